"""gs:// through google-cloud-storage against a real server: what it does, and how it fails."""

import errno
import os
import pathlib
import random
import re
import shlex
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

import exact_resume
from exact_resume.checkpoints import checkpoints, manifest
from exact_resume.checkpoints.checkpoints import Best, Checkpoint
from exact_resume.events import log as event_log
from exact_resume.events.log import EventLog
from exact_resume.files import bucket, bucket_upload, publication, storage
from vertex_testing.cloud_storage.server import CloudStorage

OWN = re.compile(r"shard-\d-of-\d|a|deep/.*")


def checkpoint(step: int, best: int = 0) -> Checkpoint:
    best_so_far = Best(step=best, accuracy=0.5, loss=1.0) if best else Best()
    arrays = [np.arange(1000, dtype=np.float32) * step]
    return Checkpoint(step=step, best=best_so_far, identity={"model": "m"}, run_id="r", arrays=arrays)


def test_objects_are_written_read_listed_and_removed(server: CloudStorage) -> None:
    for name in ("f/a", "f/sub/b", "f[1]*/c", "fa"):
        storage.write_text(f"gs://b/{name}", f"ü {name}")
    assert storage.read_bytes("gs://b/f/sub/b").decode() == "ü f/sub/b"
    assert storage.names("gs://b/f/") == ["a", "sub"]
    assert storage.names("gs://b/f[1]*") == ["c"]
    assert storage.names("gs://b/nothing") == []
    assert bucket.tree("gs://b/f") == ["a", "sub/b"]
    assert [storage.exists(f"gs://b/{name}") for name in ("f/a", "f", "none")] == [True, False, False]
    storage.remove_tree("gs://b/f")
    assert server.buckets.names("b") == ["f[1]*/c", "fa"]
    with pytest.raises(FileNotFoundError):
        storage.remove("gs://b/f/a")
    assert storage.read_json("gs://b/none.json") is None


def test_more_than_the_allowed_bytes_are_not_read(server: CloudStorage) -> None:
    server.buckets.put("b", "f", b"12345")
    assert bucket.read("gs://b/f", max_bytes=5) == b"12345"
    with pytest.raises(OSError, match="more than 4 bytes"):
        bucket.read("gs://b/f", max_bytes=4)


def test_a_folder_with_more_objects_than_a_page_holds_is_listed_whole(server: CloudStorage) -> None:
    for number in range(1203):
        server.buckets.put("b", f"many/{number:04d}", b"")
    assert len(storage.names("gs://b/many")) == 1203


def test_what_another_process_changed_is_seen_at_once(server: CloudStorage) -> None:
    storage.write_json("gs://b/result.json", {"step": 1})
    assert storage.read_json("gs://b/result.json") == {"step": 1}
    server.buckets.put("b", "result.json", b'{"step": 2, "longer": "than before"}')
    assert storage.read_json("gs://b/result.json") == {"step": 2, "longer": "than before"}
    server.buckets.delete("b", "result.json")
    assert not storage.exists("gs://b/result.json")
    assert storage.read_json("gs://b/result.json") is None


@pytest.mark.parametrize("status", [429, 500, 503])
def test_temporary_failures_are_retried(server: CloudStorage, status: int) -> None:
    server.faults.fail(2, status)
    storage.write_text("gs://b/x", "content")
    server.faults.fail(2, status)
    assert storage.read_bytes("gs://b/x") == b"content"
    server.faults.fail(2, status)
    assert storage.names("gs://b") == ["x"]


def test_an_interrupted_upload_resumes_at_its_last_piece(server: CloudStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_upload, "_PIECE_BYTES", 2**22)
    data = os.urandom(10_000_000)
    # Half of the first piece that is sent, and half of the piece after it.
    server.faults.drop_upload(2_000_000, matching="PUT .*", count=2)
    storage.write_bytes("gs://b/x", data)
    assert storage.read_bytes("gs://b/x") == data
    pieces = [request.num_bytes for request in server.faults.requests if request.num_bytes]
    assert sum(pieces) < 20_000_000


@pytest.mark.parametrize(
    "action",
    [
        lambda: storage.read_bytes("gs://b/x"),
        lambda: storage.read_json("gs://b/x"),
        lambda: storage.exists("gs://b/x"),
        lambda: storage.names("gs://b/f"),
        lambda: storage.write_text("gs://b/x", "y"),
        lambda: storage.remove("gs://b/x"),
        lambda: storage.make_directory("gs://b/f"),
    ],
)
@pytest.mark.parametrize(
    ("status", "number", "message"),
    [
        (403, errno.EACCES, "Cloud Storage refused access"),
        (401, errno.EACCES, "no valid credentials"),
        (503, errno.EIO, "failed after several attempts (HTTP 503"),
    ],
)
def test_a_bucket_that_refuses_access_is_never_taken_for_an_empty_one(
    server: CloudStorage, action: Callable[[], object], status: int, number: int, message: str
) -> None:
    server.faults.fail(1000, status)
    with pytest.raises(OSError, match="gs://b/") as caught:
        action()
    assert caught.value.errno == number
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_bucket_is_named(server: CloudStorage) -> None:
    for action in (
        lambda: storage.read_json("gs://none/x"),
        lambda: storage.names("gs://none/f"),
        lambda: storage.exists("gs://none/x"),
        lambda: storage.make_directory("gs://none/f"),
    ):
        with pytest.raises(OSError, match="bucket 'none' does not exist") as caught:
            action()
        assert caught.value.errno == errno.ENXIO


def test_an_exceeded_quota_is_not_the_fault_of_the_path(server: CloudStorage) -> None:
    server.faults.num_writable_bytes = 10
    storage.write_text("gs://b/x", "12345")
    with pytest.raises(OSError, match="quota") as caught:
        storage.write_text("gs://b/y", "1234567890")
    assert caught.value.errno == errno.EDQUOT
    assert server.buckets.names("b") == ["x"]


def test_checkpoints_are_saved_restored_and_pruned_manifest_first(server: CloudStorage) -> None:
    for step in (1, 2, 3, 4):
        checkpoints.save("gs://b/run", checkpoint(step, best=1))
    newest, skipped = checkpoints.newest("gs://b/run")
    assert newest
    assert (newest.step, skipped) == (4, [])
    np.testing.assert_array_equal(newest.arrays[0], checkpoint(4).arrays[0])
    server.faults.requests.clear()
    checkpoints.prune("gs://b/run", keep=2, best_step=1)
    assert checkpoints.steps("gs://b/run") == [4, 3, 1]
    removed = [
        request.target.partition("?")[0].rpartition("%2F")[2]
        for request in server.faults.requests
        if request.method == "DELETE"
    ]
    assert removed == ["manifest.json", "variables.npz"]
    assert checkpoints.best("gs://b/run").step == 1


def test_a_torn_checkpoint_is_skipped_and_one_that_cannot_be_read_now_is_not(server: CloudStorage) -> None:
    for step in (1, 2):
        checkpoints.save("gs://b/run", checkpoint(step))
    damaged = f"run/{manifest.name(2)}/{checkpoints.VARIABLES_FILE}"
    server.buckets.put("b", damaged, server.buckets.get("b", damaged).data[:-10])
    newest, skipped = checkpoints.newest("gs://b/run")
    assert newest
    assert newest.step == 1
    assert "the manifest lists" in skipped[0]
    server.faults.fail(1000, 503, matching="variables.npz")
    with pytest.raises(OSError, match="HTTP 503"):
        checkpoints.newest("gs://b/run")
    with pytest.raises(OSError, match="HTTP 503"):
        checkpoints.save("gs://b/run", checkpoint(1))
    server.faults.clear()
    assert checkpoints.steps("gs://b/run") == [2, 1]


def test_the_remains_of_an_interrupted_writer_do_not_count_and_are_removed(server: CloudStorage) -> None:
    server.buckets.put("b", "out/shard-3-of-4", b"of another attempt")
    assert not publication.is_occupied("gs://b/out", last="deep/last", own=OWN)
    with publication.committed_directory("gs://b/out", last="deep/last", own=OWN) as folder:
        (folder / "deep").mkdir()
        for name in ("a", "deep/b", "deep/last"):
            (folder / name).write_text(name)
    assert server.buckets.names("b") == ["out/a", "out/deep/b", "out/deep/last"]
    uploads = [r.target for r in server.faults.requests if r.method == "POST"]
    assert uploads[-1].endswith("last")
    with pytest.raises(FileExistsError), publication.committed_directory("gs://b/out", last="deep/last", own=OWN):
        pass


def test_files_of_others_are_never_removed_from_a_bucket(server: CloudStorage) -> None:
    server.buckets.put("b", "out/deeper/precious", b"of the user")
    assert publication.is_occupied("gs://b/out", last="deep/last", own=OWN)
    assert publication.is_occupied("gs://b", last="deep/last", own=OWN)
    with pytest.raises(FileExistsError), publication.committed_directory("gs://b/out", last="deep/last", own=OWN):
        pass
    with publication.committed_directory("gs://b/new", last="a", own=OWN) as folder:
        (folder / "a").touch()
        server.buckets.put("b", "new/shard-1-of-2", b"of another attempt")
        server.buckets.put("b", "new/precious", b"of the user, meanwhile")
    assert server.buckets.names("b") == ["new/a", "new/precious", "out/deeper/precious"]


def test_events_are_written_in_parts_and_read_as_one(server: CloudStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "PART_BYTES", 2000)
    monkeypatch.setattr(event_log, "SECONDS_BETWEEN_WRITES", 0.01)
    for run in range(2):
        log = EventLog("gs://b/run", "workerpool0-0")
        log.write("start", run=run)
        for step in range(40):
            log.write("steps", last_step=step, run=run, padding="x" * 100)
            if step % 10 == 0:
                # Waits until everything is written.
                log.write("exit", code=step)
        log.write("exit", code=0)
    found = event_log.read("gs://b/run")
    assert {event["replica"] for event in found} == {"workerpool0-0"}
    steps = [(event["run"], event["last_step"]) for event in found if event["event"] == "steps"]
    assert steps == [(run, step) for run in range(2) for step in range(40)]
    names = server.buckets.names("b", "run/events/")
    assert names[:2] == ["run/events/workerpool0-0.0001.jsonl", "run/events/workerpool0-0.0002.jsonl"]
    assert len(names) > 3
    # No write has more than a part and the lines that were added during the write before.
    assert max(request.num_bytes for request in server.faults.requests) < 4000


def test_an_unavailable_bucket_loses_no_event(server: CloudStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_log, "SECONDS_BETWEEN_WRITES", 0.01)
    log = EventLog("gs://b/run", "workerpool0-0")
    server.faults.fail(10, 503, matching="POST ")
    log.write("start")
    log.write("steps", last_step=1)
    log.write("exit", code=0)
    assert [event["event"] for event in event_log.read("gs://b/run")] == ["start", "steps", "exit"]


def test_no_random_number_of_the_program_is_used_up(server: CloudStorage) -> None:
    """A training has saved and restored the global generator, and a save happens while it draws."""
    before = random.getstate()
    server.faults.fail(1, 503, matching="POST")
    storage.write_bytes("gs://b/small", b"x")
    storage.write_bytes("gs://b/large", bytes(20 * 2**20))
    assert storage.read_bytes("gs://b/small") == b"x"
    assert storage.names("gs://b") == ["large", "small"]
    assert random.getstate() == before


@pytest.mark.parametrize(
    ("words", "exit_code"),
    [
        (["-m", "exact_resume", "--checkpoint-directory=gs://b/run", "--watch=w", "--whole=rename:*", "--", "true"], 2),
        (["-c", "import exact_resume; exact_resume.run('gs://b/run', steps=1, state={'a': []}).__enter__()"], 1),
    ],
)
def test_without_the_package_of_google_the_command_to_install_it_is_named(
    tmp_path: pathlib.Path, words: list[str], exit_code: int
) -> None:
    for package in (np, exact_resume):
        folder = pathlib.Path(str(package.__file__)).parent
        for each in folder.parent.glob(f"{folder.name}*"):
            (tmp_path / each.name).symlink_to(each)
    variables = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-S", *words], cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert (done.returncode, len(done.stderr.splitlines())) == (exit_code, 1), done.stderr
    *_, command = done.stderr.strip().partition("; run ")
    assert shlex.split(command) == [sys.executable, "-m", "pip", "install", "google-cloud-storage"]
