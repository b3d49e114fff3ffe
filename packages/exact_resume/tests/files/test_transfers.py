"""Transfers from and to a bucket: resumed, verified, given up, overlapped, and with the right credentials."""

import errno
import io
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from requests import Session

from exact_resume.files import bucket, bucket_client, bucket_upload, downloads, storage
from exact_resume.files.overlap import in_order
from vertex_testing.cloud_storage.server import CloudStorage


def test_an_interrupted_download_resumes_where_it_stopped(server: CloudStorage) -> None:
    data = os.urandom(3_000_000)
    server.buckets.put("b", "x", data)
    server.faults.cut_answer(1_000_000, matching="GET .*/download/", count=2)
    assert storage.read_bytes("gs://b/x") == data
    begins = [int(request.range.removeprefix("bytes=").rstrip("-") or 0) for request in server.faults.requests]
    assert begins == sorted(set(begins))
    assert len(begins) == 3
    assert begins[0] == 0
    assert begins[1] > 0


def test_progress_does_not_use_up_the_attempts(server: CloudStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GCS_RETRY_CONFIG_MAX_RETRIES", "1")
    data = os.urandom(5_000_000)
    storage.write_bytes("gs://b/x", data)
    server.faults.cut_answer(500_000, matching="GET .*/download/", count=8)
    assert storage.read_bytes("gs://b/x") == data
    assert server.buckets.get("b", "x").data == data
    server.faults.fail(2, 503)
    with pytest.raises(OSError, match="HTTP 503"):
        storage.read_bytes("gs://b/x")


def test_a_session_that_takes_nothing_is_given_up(server: CloudStorage) -> None:
    server.faults.drop_upload(0, matching="PUT ", count=100)
    with pytest.raises(OSError, match="failed after several attempts") as caught:
        storage.write_bytes("gs://b/x", bytes(10_000_000))
    assert caught.value.errno == errno.EIO
    server.faults.clear()
    server.faults.fail(1, 410, matching="PUT ")
    with pytest.raises(OSError, match="HTTP 410"):
        storage.write_bytes("gs://b/x", bytes(10_000_000))


@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.parametrize("last", [False, True])
def test_a_service_that_keeps_a_part_of_a_piece_gets_the_object_again(
    server: CloudStorage, monkeypatch: pytest.MonkeyPatch, count: int, last: bool
) -> None:
    monkeypatch.setattr(bucket_upload, "_PIECE_BYTES", 2**23)
    request, num_cut, data = Session.request, 0, os.urandom(10_000_000)

    def cut(self: Session, method: str, url: str, **options: Any) -> Any:
        nonlocal num_cut
        sent = str((options.get("headers") or {}).get("content-range", ""))
        if num_cut < count and sent.startswith("bytes ") and sent.startswith("bytes 0-") != last:
            num_cut += 1
            begin = int(sent.removeprefix("bytes ").partition("-")[0])
            options["data"] = options["data"][: 2**18]
            options["headers"] |= {"content-range": f"bytes {begin}-{begin + 2**18 - 1}/{len(data)}"}
        return request(self, method, url, **options)

    monkeypatch.setattr(Session, "request", cut)
    if count > 1:
        with pytest.raises(OSError, match="only a part of a piece has arrived"):
            storage.write_bytes("gs://b/x", data)
        assert not storage.exists("gs://b/x")
    else:
        storage.write_bytes("gs://b/x", data)
        assert server.buckets.get("b", "x").data == data
    assert num_cut == min(count, 3)


def test_a_copy_continues_at_its_end(server: CloudStorage, tmp_path: Path) -> None:
    server.buckets.put("b", "x", b"0123456789")
    server.buckets.put("b", "empty", b"")
    for name, begin, whole in (("x", b"abc", b"abc3456789"), ("x", b"a" * 10, b"a" * 10), ("empty", b"", b"")):
        file = tmp_path / "copy"
        file.write_bytes(begin)
        with file.open("ab") as target:
            downloads.download(f"gs://b/{name}", target)
        assert file.read_bytes() == whole


def test_damaged_content_is_not_returned(server: CloudStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    server.buckets.put("b", "x", b"content")
    server.faults.damage(1, matching="GET .*/download/")
    with pytest.raises(OSError, match="does not match its checksum"):
        storage.read_bytes("gs://b/x")
    assert storage.read_bytes("gs://b/x") == b"content"
    # The service refuses an upload that arrives damaged, so that no object appears.
    for num_bytes in (10, 10_000_000):
        server.faults.damage(1, matching="POST .*multipart|PUT ")
        with pytest.raises(OSError, match="CRC32C"):
            storage.write_bytes("gs://b/damaged", bytes(num_bytes))
    assert server.buckets.names("b", "damaged") == []


def test_a_bucket_that_hangs_is_asked_again(server: CloudStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket, "TIMEOUT_SECONDS", (20, 0.2))
    server.buckets.put("b", "x", b"content")
    arrived, _ = server.faults.hold("GET .*/download/")
    assert storage.read_bytes("gs://b/x") == b"content"
    assert arrived.is_set()


def test_the_pauses_grow_and_differ() -> None:
    pauses = [bucket_client._pause_seconds(number) for number in (1, 4, 8, 40)]
    assert all(pause <= 0.02 for pause in pauses)
    assert len({bucket_client._pause_seconds(9) for _ in range(20)}) > 1


def test_a_removal_whose_answer_was_lost_is_one(server: CloudStorage) -> None:
    server.buckets.put("b", "x", b"")
    server.faults.cut_answer(0, matching="DELETE ")
    storage.remove("gs://b/x")
    with pytest.raises(FileNotFoundError):
        storage.remove("gs://b/x")


@pytest.mark.parametrize("path", ["gs://b", "gs://b/", "gs:///x", "file:///x", "gs:/b/x"])
def test_an_address_without_a_name_is_no_object(server: CloudStorage, path: str) -> None:
    with pytest.raises(OSError, match="expected a bucket and a name") as caught:
        bucket.read(path)
    assert caught.value.errno == errno.EINVAL
    assert server.faults.requests == []


def test_names_with_special_characters_are_kept(server: CloudStorage) -> None:
    name = "d/ä ?#%2F+&=\n[*]"
    storage.write_bytes(f"gs://b/{name}", b"x")
    assert name in server.buckets.names("b")
    assert storage.names("gs://b/d") == [name.removeprefix("d/")]
    assert storage.read_bytes(f"gs://b/{name}") == b"x"
    storage.remove(f"gs://b/{name}")


def test_each_kind_of_bad_object_has_its_error(server: CloudStorage) -> None:
    for number in (11, 13, 28, 29):
        server.buckets.put("b", f"many/{number}", bytes(number))
    server.faults.fail(100, 403, matching="many%2F11")
    server.faults.fail(100, 503, matching="many%2F13")
    for number, error in {10: FileNotFoundError, 11: PermissionError, 13: OSError, 29: OSError}.items():
        with pytest.raises(OSError) as caught:  # noqa: PT011 - its message is that of another test
            bucket.read(f"gs://b/many/{number}", max_bytes=28)
        assert caught.type is error
    assert bucket.read("gs://b/many/28", max_bytes=28) == bytes(28)


def test_reads_use_all_connections_at_once_and_no_more(server: CloudStorage) -> None:
    for number in range(64):
        server.buckets.put("b", f"many/{number}", b"x")
    # Each request is answered when eight of them are there.
    server.faults.at_once = threading.Barrier(8)
    found = list(in_order(bucket.read, [f"gs://b/many/{number}" for number in range(64)], num_threads=8))
    assert found == [b"x"] * 64
    assert len(server.faults.requests) == 64


def test_ctrl_c_waits_for_no_request(server: CloudStorage) -> None:
    server.buckets.put("b", "x", b"x")
    arrived, proceed = server.faults.hold("GET .*/download/")
    program = (
        "from exact_resume.files import bucket, overlap\n"
        "list(overlap.in_order(bucket.read, ['gs://b/x'] * 4, num_threads=16))"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True)
    assert arrived.wait(60)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=300)
    assert "KeyboardInterrupt" in stderr
    assert not proceed.is_set()


def test_a_process_made_by_fork_has_its_own_connections(server: CloudStorage) -> None:
    server.buckets.put("b", "x", b"x")
    assert bucket.read("gs://b/x") == b"x"
    here = bucket_client.client()
    assert bucket_client.client() is here
    if (child := os.fork()) == 0:
        os._exit(0 if bucket_client.client() is not here else 1)
    assert os.waitpid(child, 0)[1] == 0


READ = "from exact_resume.files import bucket; print(bucket.read('gs://b/x'), bucket.exists('gs://b/none'))"


def test_google_itself_gets_the_default_credentials(server: CloudStorage, tmp_path: Path) -> None:
    """The server as storage.googleapis.com, and the key of a service account, whose token it gives out."""
    server.buckets.put("b", "x", b"x")
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "key.json").write_text(
        json.dumps(
            {
                "type": "service_account",
                "client_email": "a@project.iam.gserviceaccount.com",
                "token_uri": "https://www.googleapis.com/oauth2/tests/token",
                "private_key": key.decode(),
            }
        )
    )
    (tmp_path / ".netrc").write_text("machine storage.googleapis.com login a password b\n")
    (tmp_path / ".netrc").chmod(0o600)
    inherited = {name: value for name, value in os.environ.items() if name != "STORAGE_EMULATOR_HOST"}
    env = inherited | server.proxy | {"HOME": str(tmp_path), "CLOUDSDK_CONFIG": str(tmp_path)}
    command = [sys.executable, "-c", READ]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert "no valid credentials for Cloud Storage (run `gcloud auth" in done.stderr
    assert server.faults.requests == []
    env["GOOGLE_APPLICATION_CREDENTIALS"] = str(tmp_path / "key.json")
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("b'x' False\n", "")
    hosts = {request.target.partition("/")[0] for request in server.faults.requests}
    assert hosts == {"www.googleapis.com", "storage.googleapis.com"}
    # The emulator is asked without them: the server refuses a request that has any.
    env["STORAGE_EMULATOR_HOST"] = server.environment["STORAGE_EMULATOR_HOST"]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("b'x' False\n", "")


def test_tensorflow_is_not_imported(server: CloudStorage) -> None:
    server.buckets.put("b", "x", b"x")
    program = f"{READ}; import sys; print([name for name in ('tensorflow', 'keras', 'kfp') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["b'x' False", "[]"], done.stderr


def test_a_library_gets_a_local_copy(server: CloudStorage, tmp_path: Path) -> None:
    server.buckets.put("b", "model/a.pb", b"a")
    server.buckets.put("b", "model/variables/b", b"b")
    server.buckets.put("b", "model/", b"")
    with downloads.local_copy("gs://b/model/") as folder:
        assert Path(folder, "variables", "b").read_bytes() == b"b"
        assert sorted(os.listdir(folder)) == ["a.pb", "variables"]
    assert not os.path.exists(folder)
    with downloads.local_copy("gs://b/model/a.pb") as file:
        assert Path(file).read_bytes() == b"a"
    with downloads.local_copy(tmp_path) as same:
        assert same == str(tmp_path)
    with pytest.raises(FileNotFoundError), downloads.local_copy("gs://b/none"):
        pass


def test_a_full_disk_is_not_the_buckets_fault(server: CloudStorage) -> None:
    server.buckets.put("b", "x", bytes(100_000))
    with io.FileIO("/dev/full", "ab") as full, pytest.raises(OSError, match="No space left") as caught:
        downloads.download("gs://b/x", full)
    assert caught.value.errno == errno.ENOSPC
    assert len([request for request in server.faults.requests if "/download/" in request.target]) == 1
