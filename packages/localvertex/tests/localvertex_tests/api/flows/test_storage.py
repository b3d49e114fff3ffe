"""google-cloud-storage over the folders of the buckets: nothing leaves a bucket, and nothing half-written is seen."""

import os
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests
from google.api_core import exceptions

from localvertex.api.rest.storage.objects import Objects, PreconditionFailed
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
    yield client.bucket("things")
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


def test_the_sdk_is_told_nothing_about_a_bucket(bucket: Any) -> None:
    """It would go on and ask Google for the number of the project, over the network."""
    for ask in (bucket.exists, bucket.reload, bucket.create, bucket.delete):
        with pytest.raises(exceptions.MethodNotImplemented, match="a bucket is a folder"):
            ask()


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


@pytest.mark.slow
def test_a_server_that_is_refused_leaves_the_uploads_of_the_running_one(
    endpoint: Server, folder: Path, python: str
) -> None:
    begun = endpoint.request("POST", f"{UPLOADS}?uploadType=resumable", data=b'{"name": "kept"}', headers=JSON)
    number = begun.headers["location"].partition("upload_id=")[2]
    words = [python, "-m", "localvertex", "serve", "--port", "0", "--work-dir", str(endpoint.work_dir)]
    assert subprocess.run(words, capture_output=True, timeout=60).returncode == 2
    done = endpoint.request("PUT", f"{UPLOADS}?uploadType=resumable&upload_id={number}", data=b"data")
    assert done.status_code == 200, done.text
    assert (folder / "kept").read_bytes() == b"data"
