"""The real gcloud, without credentials and with loopback as all of Google: the facts that the fake gcloud imitates."""

import os
import pathlib
import shlex
import shutil
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from pipelines.project.gcloud import AccessDenied, CloudError, Gcloud
from pipelines.project.resources import (
    ForeignBucket,
    Names,
    account,
    bucket,
    find_bucket,
    is_marked,
    repository,
)
from tests.pipelines.project.conftest import Script

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not installed"),
]
APIS = (
    "STORAGE",
    "IAM",
    "ARTIFACTREGISTRY",
    "CLOUDRESOURCEMANAGER",
    "SERVICEUSAGE",
    "CLOUDBUILD",
    "SECRETMANAGER",
    "PUBSUB",
)
MARK = {"created-by": "image-training-cloud-py"}
ACCOUNT = "image-training@my-project.iam.gserviceaccount.com"


def answer(path: str) -> tuple[int, dict[str, Any]]:
    """Return what Google's APIs answer to a GET: of the names, only those with image-training exist."""
    missing = 404, {"error": {"code": 404, "message": "no such thing", "status": "NOT_FOUND"}}
    _, _, place = path.partition("?")[0].partition("/projects/")
    if place.endswith("/locations"):
        return 200, {"locations": [{"locationId": each} for each in ("asia-east1", "europe-west4")]}
    if place == "down1-project/locations/asia-east1/repositories":
        return 503, {"error": {"code": 503, "message": "try later", "status": "UNAVAILABLE"}}
    if place.endswith("/repositories"):
        repository = {"name": f"projects/{place}/image-training", "format": "DOCKER", "labels": MARK}
        return 200, {"repositories": [repository]} if "europe" in place else {}
    if "/b/my-project-image-training2/o" in path:
        return 200, {"kind": "storage#objects"}
    if "/b/my-project-filled1/o" in path:
        return 200, {"items": [{"name": "deep/file", "bucket": "my-project-filled1", "generation": "1", "size": "1"}]}
    if "/b/my-project-image-training2" in path or "/b/my-project-filled1" in path:
        access = {"uniformBucketLevelAccess": {"enabled": True}, "publicAccessPrevention": "enforced"}
        new = {"projectNumber": "111", "location": "US", "metageneration": "1", "iamConfiguration": access}
        return 200, new | {"name": path.partition("/b/")[2].partition("?")[0]}
    if "/b/my-project-denied1" in path:
        return 403, {"error": {"code": 403, "message": "me does not have storage.buckets.get access"}}
    if "denied1" in path:
        return 403, {"error": {"code": 403, "message": "denied (or it may not exist)", "status": "PERMISSION_DENIED"}}
    if "/b/my-project-shared1" in path:
        return 200, {"name": "my-project-shared1", "projectNumber": "222", "location": "US-CENTRAL1"}
    if "/b/my-project-image-training" in path:
        return 200, {"name": "my-project-image-training", "projectNumber": "111", "labels": MARK, "location": "US"}
    if "repositories/image-training" in path:
        return 200, {"name": path.partition("/v1/")[2].partition("?")[0], "format": "DOCKER", "labels": MARK}
    if f"serviceAccounts/{ACCOUNT}" in path:
        return 200, {"email": ACCOUNT, "projectId": "my-project", "description": "(created-by=image-training-cloud-py)"}
    if path.partition("?")[0].endswith("/projects/my-project"):
        return 200, {"projectId": "my-project", "projectNumber": "111", "lifecycleState": "ACTIVE"}
    return missing


@pytest.fixture
def google(service: Callable[..., str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point gcloud to a server on loopback, without a configuration or credentials."""
    refused = 400, {"error": {"message": "not here"}}
    url = service(lambda method, path: answer(path) if method == "GET" else refused)
    for api in APIS:
        monkeypatch.setenv(
            f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api}", f"{url}/storage/v1/" if api == "STORAGE" else f"{url}/"
        )
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "gcloud"))
    monkeypatch.setenv("CLOUDSDK_AUTH_DISABLE_CREDENTIALS", "true")
    monkeypatch.setenv("CLOUDSDK_CORE_DISABLE_USAGE_REPORTING", "true")
    monkeypatch.setenv("CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK", "true")


def names(name: str) -> Names:
    return Names(project="my-project", region="us-central1", name=name)


@pytest.mark.soak
@pytest.mark.usefixtures("google")
def test_what_exists_what_is_missing_and_what_is_foreign() -> None:
    gcloud = Gcloud(dry_run=True)
    ours, gone, denied = names("image-training"), names("nothing1"), names("denied1")
    found = find_bucket(gcloud, ours)
    assert found is not None
    assert (found["location"], is_marked(found)) == ("US", True)
    assert is_marked(repository(ours).find(gcloud))
    assert is_marked(account(ours).find(gcloud))
    assert find_bucket(gcloud, gone) is None
    assert repository(gone).find(gcloud) is None
    assert account(gone).find(gcloud) is None
    for each in (repository(denied), account(denied), bucket(denied)):
        with pytest.raises(AccessDenied):
            each.find(gcloud)
    with pytest.raises(ForeignBucket, match="in another project, or you may not read it"):
        find_bucket(gcloud, denied)
    with pytest.raises(ForeignBucket, match="in another project, not in my-project"):
        find_bucket(gcloud, names("shared1"))


@pytest.mark.usefixtures("google")
def test_the_repositories_of_all_regions_are_listed_and_a_region_that_is_down_is_an_error() -> None:
    words = ("gcloud", "artifacts", "repositories", "list", "--location=all")
    found = Gcloud(dry_run=True).read_list(*words, "--project=my-project")
    assert [each["name"] for each in found] == [
        "projects/my-project/locations/europe-west4/repositories/image-training"
    ]
    with pytest.raises(CloudError, match=r"Failed to list repositories for project .*asia-east1"):
        Gcloud(dry_run=True).read_list(*words, "--project=down1-project")


@pytest.mark.usefixtures("google")
def test_gcloud_knows_every_flag(cloud: Script, world: Any, state_after_up: str, repository: pathlib.Path) -> None:
    world.file.write_text(state_after_up)
    shown = cloud("up", "--dry-run").stdout + cloud("down", "--dry-run", "--with-bucket").stdout
    commands = [shlex.split(line) for line in shown.splitlines() if line.startswith("gcloud ")]
    ours = names("image-training")
    commands += [list(each.adopt) for each in (bucket(ours), account(ours))]
    assert len(commands) >= 15
    for words in commands:
        # A build would upload the checkout.
        if words[1] == "builds":
            continue
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=repository, env=dict(os.environ)
        )
        # gcloud ends with 2 if it does not know a command or a flag.
        assert done.returncode in (0, 1), done.stderr
        assert "unrecognized" not in done.stderr


@pytest.mark.usefixtures("google")
def test_gcloud_knows_every_flag_of_the_notifications_page(repository: pathlib.Path) -> None:
    text = (repository / "docs" / "notifications.md").read_text().replace("\\\n", "")
    commands = [line for line in text.splitlines() if line.startswith("gcloud secrets ")]
    assert len(commands) == 2
    for line in commands:
        done = subprocess.run(shlex.split(line), input="https://x/y\n", capture_output=True, text=True)
        # The server on loopback refuses every change; gcloud ends with 2 if it does not know a command or a flag.
        assert done.returncode == 1, done.stderr
        assert "unrecognized" not in done.stderr
