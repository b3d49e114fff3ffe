"""google-cloud-storage, which uses REST whatever the transport of the SDK is."""

from pathlib import Path
from typing import Any

from google.api_core import exceptions
from google.cloud import aiplatform, storage
from localvertex_tests.api.flows.transports.flow import flow


def client() -> storage.Client:
    """Connect as the SDK does."""
    return storage.Client(project="local-project", credentials=aiplatform.initializer.global_config.credentials)


@flow([False, True, "US-CENTRAL1", ["created"], False])
def bucket_create_list_and_delete() -> Any:
    bucket = client().bucket("created")
    seen = [bucket.exists()]
    client().create_bucket("created", location="us-central1")
    seen += [bucket.exists(), client().get_bucket("created").location]
    seen += [[each.name for each in client().list_buckets(prefix="creat")]]
    bucket.delete()
    return [*seen, bucket.exists()]


@flow(exceptions.Conflict)
def bucket_that_exists() -> Any:
    for _ in range(2):
        client().create_bucket("twice")


@flow(exceptions.NotFound)
def bucket_get_that_is_missing() -> Any:
    client().get_bucket("absent")


@flow(exceptions.Conflict)
def bucket_delete_that_is_not_empty() -> Any:
    bucket = client().create_bucket("full")
    bucket.blob("a").upload_from_string("data")
    bucket.delete()


@flow(["data", "rows", ["a/1", "a/2"], 4, ["a/1"]])
def blob_upload_download_list_and_delete() -> Any:
    bucket = client().create_bucket("objects")
    Path("rows").write_text("rows")
    bucket.blob("a/1").upload_from_string("data")
    bucket.blob("a/2").upload_from_filename("rows")
    bucket.blob("a/2").download_to_filename("back")
    seen = [bucket.blob("a/1").download_as_text(), Path("back").read_text()]
    seen += [[each.name for each in bucket.list_blobs(prefix="a/")], bucket.get_blob("a/2").size]
    bucket.delete_blob("a/2")
    return [*seen, [each.name for each in bucket.list_blobs()]]


@flow(exceptions.MethodNotImplemented)
def blob_copy_is_refused() -> Any:
    bucket = client().create_bucket("copies")
    blob = bucket.blob("a")
    blob.upload_from_string("a copy")
    bucket.copy_blob(blob, bucket, "b")


@flow("written")
def blob_open() -> Any:
    blob = client().create_bucket("opened").blob("a")
    with blob.open("w") as file:
        file.write("written")
    with blob.open() as file:
        return file.read()


@flow(exceptions.NotFound)
def blob_of_a_missing_bucket() -> Any:
    client().bucket("absent").blob("a").download_as_bytes()


@flow(exceptions.NotFound)
def blob_upload_to_a_missing_bucket() -> Any:
    client().bucket("absent-too").blob("a").upload_from_string("data")


@flow([False, None])
def blob_that_is_missing() -> Any:
    bucket = client().create_bucket("bare")
    return [bucket.blob("a").exists(), bucket.get_blob("a")]


@flow(exceptions.NotFound)
def blob_download_that_is_missing() -> Any:
    client().create_bucket("bare-too").blob("a").download_as_bytes()


@flow(exceptions.NotFound)
def blob_delete_that_is_missing() -> Any:
    client().create_bucket("bare-again").delete_blob("a")


@flow(exceptions.PreconditionFailed)
def blob_upload_that_exists() -> Any:
    blob = client().create_bucket("guarded").blob("a")
    for _ in range(2):
        blob.upload_from_string("data", if_generation_match=0)
