"""google-cloud-storage over the folders of the buckets: nothing leaves a bucket, and nothing half-written is seen."""

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests
from google.api_core import exceptions

from localvertex import client
from localvertex.api.rest.storage.objects import LEFT, Objects, PreconditionFailed
from localvertex.api.rest.storage.storage import Storage
from localvertex.values.buckets import PROJECT_NUMBER
from vertex_testing.server import Server

UPLOADS = "/upload/storage/v1/b/things/o"

JSON = {"content-type": "application/json"}

SIZE = 9 << 20
"""More than 8 MiB, above which the library uploads in parts."""


@pytest.fixture
def folder(endpoint: Server) -> Path:
    return endpoint.work_dir / "buckets" / "things"


@pytest.fixture
def bucket(cloud: Any) -> Iterator[Any]:
    """The bucket gs://things, as the SDK opens it."""
    from google.cloud import storage

    client = storage.Client(project="local-project", credentials=cloud.initializer.global_config.credentials)
    found = client.bucket("things")
    if not found.exists():
        found.create()
    yield found
    client.close()


def upload(server: Server, name: str, **options: Any) -> requests.Response:
    """Upload an object with one plain request."""
    body = b'--x\r\ncontent-type: application/json\r\n\r\n{"name": "%s"}\r\n--x\r\n\r\ndata\r\n--x--' % name.encode()
    headers = {"content-type": "multipart/related; boundary=x"} | options.pop("headers", {})
    return server.request("POST", f"{UPLOADS}?uploadType=multipart", data=body, headers=headers)


def test_objects_are_files_of_the_bucket(bucket: Any, folder: Path) -> None:
    large = os.urandom(SIZE)
    for name, data in (("a/b c.txt", b"small"), ("a/empty", b""), ("large", large)):
        bucket.blob(name).upload_from_string(data)
        assert (folder / name).read_bytes() == data
        assert bucket.blob(name).download_as_bytes() == data
    bucket.blob("parts", chunk_size=1 << 20).upload_from_string(large)
    assert (folder / "parts").read_bytes() == large
    assert [each.name for each in bucket.list_blobs(page_size=1)] == ["a/b c.txt", "a/empty", "large", "parts"]
    pages = bucket.list_blobs(delimiter="/")
    assert ([each.name for each in pages], pages.prefixes) == (["large", "parts"], {"a/"})
    bucket.blob("a/b c.txt").delete()
    bucket.blob("a/empty").delete()
    assert not (folder / "a").exists()
    assert not bucket.blob("a/empty").exists()


def test_no_object_is_outside_its_bucket(bucket: Any, folder: Path, endpoint: Server, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("private")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "link").symlink_to(tmp_path)
    for name in ("../escaped", "a/../../escaped", "/etc/escaped", "a//b", "a/./b", "link/escaped", "a\x00b", "x" * 400):
        with pytest.raises((exceptions.BadRequest, requests.RequestException)):
            bucket.blob(name).upload_from_string("data")
    assert not list(endpoint.work_dir.parent.rglob("*escaped*"))
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    with pytest.raises(exceptions.BadRequest):
        bucket.blob("link/mine").download_as_bytes()
    with pytest.raises(exceptions.BadRequest):
        bucket.blob("link/mine").delete()
    assert endpoint.get("/storage/v1/b/..%2Fapi/o/.lock?alt=media").status_code >= 400
    (folder / "link").unlink()


def test_an_upload_that_is_not_complete_is_no_object(bucket: Any, folder: Path, endpoint: Server) -> None:
    bucket.blob("half").upload_from_string("old")
    start = endpoint.request("POST", f"{UPLOADS}?uploadType=resumable&name=half", json={})
    place = start.headers["location"].removeprefix(endpoint.url)
    part = {"content-range": "bytes 0-3/8", "content-type": "text/plain"}
    assert endpoint.request("PUT", place, data=b"new ", headers=part).headers["range"] == "bytes=0-3"
    # The same part again, as after a lost answer, is not appended.
    assert endpoint.request("PUT", place, data=b"new ", headers=part).status_code == 400
    asked = endpoint.request("PUT", place, headers={"content-range": "bytes */8"})
    assert (asked.status_code, asked.headers["range"]) == (308, "bytes=0-3")
    assert (folder / "half").read_text() == "old"
    rest = {"content-range": "bytes 4-7/8"}
    assert endpoint.request("PUT", place, data=b"text", headers=rest).status_code == 200
    assert (folder / "half").read_text() == "new text"
    assert endpoint.request("PUT", place, data=b"more").status_code == 404


def test_an_object_is_not_replaced_against_its_precondition(bucket: Any, folder: Path) -> None:
    bucket.blob("kept").upload_from_string("first", if_generation_match=0)
    with pytest.raises(exceptions.PreconditionFailed):
        bucket.blob("kept").upload_from_string("second", if_generation_match=0)
    assert (folder / "kept").read_text() == "first"
    with pytest.raises(exceptions.BadRequest, match="cannot have the same name"):
        bucket.blob("kept/below").upload_from_string("third")


def test_a_full_disk_is_reported_at_once_and_leaves_nothing(bucket: Any, folder: Path, endpoint: Server) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    uploads = endpoint.work_dir / "api" / "uploads"
    before = {*folder.iterdir(), *uploads.glob("*")}
    with endpoint.full_disk(), pytest.raises(exceptions.Forbidden):
        bucket.blob("no-room").upload_from_string("data")
    assert {*folder.iterdir(), *uploads.glob("*")} == before
    bucket.blob("no-room").upload_from_string("data")


def test_no_web_page_uploads_and_no_object_is_a_page(bucket: Any, folder: Path, endpoint: Server) -> None:
    assert upload(endpoint, "ours.html").status_code == 200
    for headers in ({"origin": "http://evil.example"}, {"host": "evil.example"}, {"content-type": "text/plain"}):
        assert upload(endpoint, "theirs", headers=headers).status_code in (403, 415)
    url, body = f"{endpoint.url}{UPLOADS}?uploadType=resumable&name=theirs", {"name": "theirs"}
    assert requests.post(url, json=body, timeout=60).status_code == 403
    assert not (folder / "theirs").exists()
    shown = endpoint.get("/storage/v1/b/things/o/ours.html?alt=media")
    assert shown.headers["content-type"] == "application/octet-stream"


def test_buckets_are_created_found_listed_and_deleted(bucket: Any, endpoint: Server) -> None:
    from google.cloud import storage

    client = bucket.client
    new = client.create_bucket(client.bucket("new-bucket"), project="local-project", location="us-central1")
    assert (endpoint.work_dir / "buckets" / "new-bucket").is_dir()
    assert new.exists()
    new.reload()
    assert str(new.project_number) == PROJECT_NUMBER
    with pytest.raises(exceptions.Conflict):
        client.create_bucket("new-bucket")
    assert "new-bucket" in [each.name for each in client.list_buckets()]
    assert [each.name for each in client.list_buckets(prefix="new-")] == ["new-bucket"]
    # A user's folder of buckets has other folders, too, such as lost+found.
    (endpoint.work_dir / "buckets" / "No Bucket").mkdir()
    assert "No Bucket" not in [each.name for each in client.list_buckets()]
    new.blob("a/b").upload_from_string("data")
    folder = endpoint.work_dir / "buckets" / "new-bucket" / "z-empty"
    folder.mkdir()
    with pytest.raises(exceptions.Conflict, match="is not empty"):
        new.delete()
    assert folder.is_dir()
    new.delete(force=True)
    assert not new.exists()
    (endpoint.work_dir / "buckets" / "with-folders" / "a" / "b").mkdir(parents=True)
    client.bucket("with-folders").delete()
    assert not (endpoint.work_dir / "buckets" / "with-folders").exists()
    with pytest.raises(exceptions.NotFound):
        storage.Bucket(client, "new-bucket").reload()
    for name in ("x", "Upper", "..", "a/b", "things/folder"):
        answer = endpoint.request("POST", "/storage/v1/b?project=p", json={"name": name})
        assert answer.status_code == 400, name
    with pytest.raises(exceptions.BadRequest, match="is not the name of a bucket; expected 3 to 63"):
        storage.Bucket(client, "x").reload()


def test_the_sdk_makes_its_buckets_and_asks_nobody_else(cloud: Any, endpoint: Server, tmp_path: Path) -> None:
    """Without a bucket of the user the SDK makes one, and checks the next time that it belongs to the project."""
    from google.cloud.aiplatform.utils import gcs_utils

    (tmp_path / "weights").write_text("weights")
    cloud.init(staging_bucket="")
    for _ in range(2):
        uri = gcs_utils.stage_local_data_in_gcs(str(tmp_path / "weights"))
        assert (endpoint.work_dir / "buckets" / uri.removeprefix("gs://")).read_text() == "weights"
    for _ in range(2):
        found = gcs_utils.create_gcs_bucket_for_pipeline_artifacts_if_it_does_not_exist("gs://pipelines-of-mine/x")
        assert found == "gs://pipelines-of-mine/x"
    assert (endpoint.work_dir / "buckets" / "pipelines-of-mine").is_dir()


@pytest.mark.parametrize("kind", ["multipart", "resumable", "media"])
def test_an_upload_creates_no_bucket(endpoint: Server, kind: str) -> None:
    """A program that splits the path in AIP_MODEL_DIR as an address names a bucket after a part of it."""
    address, body = f"/upload/storage/v1/b/home/o?uploadType={kind}&name=x", b'{"name": "x"}'
    headers = {"content-type": "multipart/related; boundary=x"} if kind == "multipart" else JSON
    if kind == "multipart":
        body = b"--x\r\n\r\n" + body + b"\r\n--x\r\n\r\ndata\r\n--x--"
    answer = endpoint.request("POST", address, data=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["status"]) == (404, "NOT_FOUND"), answer.text
    assert not (endpoint.work_dir / "buckets" / "home").exists()


def test_a_job_that_names_a_bucket_and_the_staging_bucket_of_a_client_create_it(
    cloud: Any, endpoint: Server, bucket: Any
) -> None:
    client.init(endpoint.work_dir, staging_bucket="gs://of-a-client/folder", api_transport="rest")
    bucket.client.bucket("of-a-client").blob("x").upload_from_string("data")
    command = ["python", "-c", "import sys; print(sys.argv)", "--out=gs://of-a-job/x"]
    pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "container_spec": {"image_uri": "i", "command": command}}
    job = cloud.CustomJob("j", worker_pool_specs=[pool], staging_bucket="gs://staging")
    job.run()
    bucket.client.bucket("of-a-job").blob("x").upload_from_string("data")


def test_an_upload_may_be_the_bare_data(endpoint: Server, folder: Path, bucket: Any) -> None:
    headers = {"content-type": "application/octet-stream"}
    answer = endpoint.request("POST", f"{UPLOADS}?uploadType=media&name=a/bare", data=b"data", headers=headers)
    assert (answer.status_code, answer.json()["size"]) == (200, "4")
    assert (folder / "a" / "bare").read_bytes() == b"data"
    assert endpoint.request("POST", f"{UPLOADS}?uploadType=media", data=b"data", headers=headers).status_code == 400


def test_what_a_killed_server_left_goes_with_the_next_start(tmp_path: Path) -> None:
    root, private = tmp_path / "buckets", tmp_path / "uploads"
    (root / "things").mkdir(parents=True)
    private.mkdir()
    mine, others = root / "things" / f".{'0' * 16}.partial", root / "things" / f".{'1' * 16}.partial"
    users, elsewhere = root / "things" / "notes.txt", tmp_path / f".{'2' * 16}.partial"
    for path in (mine, others, users, elsewhere):
        path.write_text("half")
    for number, path in enumerate((mine, users, elsewhere)):
        (private / f"{number}{LEFT}").write_text(str(path))
    (private / f"9{LEFT}").write_text("\0")
    Storage(root, private).open()
    assert [path.exists() for path in (mine, others, users, elsewhere)] == [False, True, True, True]
    assert not private.exists()


def test_a_kill_while_an_upload_is_moved_leaves_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    objects, source = Objects(root=tmp_path / "buckets"), tmp_path / "uploads" / "1"
    source.parent.mkdir()
    source.write_text("data")
    seen: list[str] = []

    def move(_: Path, aside: Path) -> None:
        seen.extend(each.read_text() for each in source.parent.glob(f"*{LEFT}"))
        assert seen == [str(aside)]
        raise OSError("cut off")

    monkeypatch.setattr(shutil, "move", move)
    with pytest.raises(OSError, match="cut off"):
        objects.put(source, "things", "a", {})
    assert seen
    assert not list(source.parent.glob(f"*{LEFT}"))


def test_a_bucket_that_is_a_link_leads_nowhere(endpoint: Server) -> None:
    """The cookie of a browser allows reading only, and must not read the token."""
    link = endpoint.work_dir / "buckets" / "linked"
    link.parent.mkdir(exist_ok=True)
    link.symlink_to("../api")
    try:
        assert endpoint.get("/storage/v1/b/linked/o/token?alt=media").status_code == 400
        assert endpoint.get("/storage/v1/b/linked/o").status_code == 400
    finally:
        link.unlink()


def test_names_that_are_no_text_harm_nobody(endpoint: Server, folder: Path) -> None:
    begun = endpoint.request("POST", f"{UPLOADS}?uploadType=resumable", data=b'{"name": "a\\ud800"}', headers=JSON)
    assert begun.status_code == 400
    folder.mkdir(parents=True, exist_ok=True)
    odd = os.fsencode(folder) + b"/\xff"
    with open(odd, "w"):
        (folder / "even").write_text("x")
    names = [each["name"] for each in endpoint.get("/storage/v1/b/things/o").json()["items"]]
    os.unlink(odd)
    assert "even" in names
    assert all(name.isprintable() for name in names)


def test_only_one_of_several_writers_makes_an_object(tmp_path: Path) -> None:
    objects = Objects(root=tmp_path / "buckets")
    sources = [tmp_path / str(number) for number in range(8)]
    for source in sources:
        source.write_text(source.name)
    together = threading.Barrier(len(sources))

    def put(source: Path) -> str:
        together.wait()
        try:
            return objects.put(source, "things", "folder/one", {"ifGenerationMatch": "0"}).read_text()
        except PreconditionFailed:
            return ""

    with ThreadPoolExecutor(len(sources)) as pool:
        made = [text for text in pool.map(put, sources) if text]
    assert len(made) == 1
    assert (tmp_path / "buckets" / "things" / "folder" / "one").read_text() == made[0]


def test_lists_and_changes_go_on_while_steps_write(tmp_path: Path) -> None:
    objects = Objects(root=tmp_path / "buckets")
    ended = threading.Event()

    def change(number: int) -> None:
        for turn in range(100):
            source = tmp_path / f"{number} {turn}"
            source.write_text("x")
            objects.put(source, "things", f"folder/{number}", {})
            objects.delete("things", f"folder/{number}", {})

    def look() -> None:
        while not ended.is_set():
            objects.page("things", {})

    with ThreadPoolExecutor(5) as pool:
        looking = pool.submit(look)
        for changing in [pool.submit(change, number) for number in range(4)]:
            changing.result()
        ended.set()
        looking.result()


def test_gcsfs_uploads_with_lines_and_requests_of_its_own(endpoint: Server, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    body = b'--x\nContent-Type: application/json\n\n{"name": "small"}\n--x\nContent-Type: text/plain\n\na\n\n--x--'
    headers = {"content-type": 'multipart/related; boundary="x"'}
    done = endpoint.request("POST", f"{UPLOADS}?uploadType=multipart", data=body, headers=headers)
    assert done.status_code == 200, done.text
    assert (folder / "small").read_bytes() == b"a\n"
    begun = endpoint.request("POST", f"{UPLOADS}?uploadType=resumable", data=b'{"name": "large"}', headers=JSON)
    number = begun.headers["location"].partition("upload_id=")[2]
    for first, data, code in ((0, b"ab", 308), (2, b"c", 200)):
        size = "*" if code == 308 else "3"
        headers = {"content-type": "text/plain", "content-range": f"bytes {first}-{first + len(data) - 1}/{size}"}
        place = f"{UPLOADS}?uploadType=resumable&upload_id={number}"
        assert endpoint.request("POST", place, data=data, headers=headers).status_code == code
    assert (folder / "large").read_bytes() == b"abc"


@pytest.mark.slow
def test_a_server_that_is_refused_leaves_the_uploads_of_the_running_one(
    endpoint: Server, folder: Path, python: str
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    begun = endpoint.request("POST", f"{UPLOADS}?uploadType=resumable", data=b'{"name": "kept"}', headers=JSON)
    number = begun.headers["location"].partition("upload_id=")[2]
    words = [python, "-m", "localvertex", "serve", "--port", "0", "--work-dir", str(endpoint.work_dir)]
    assert subprocess.run(words, capture_output=True, timeout=60).returncode == 2
    done = endpoint.request("PUT", f"{UPLOADS}?uploadType=resumable&upload_id={number}", data=b"data")
    assert done.status_code == 200, done.text
    assert (folder / "kept").read_bytes() == b"data"
