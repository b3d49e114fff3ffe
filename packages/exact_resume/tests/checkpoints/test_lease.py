"""The lease: one job holds it, its heartbeat protects it, and a former holder commits nothing."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from exact_resume.checkpoints import checkpoints, lease as leases, seal
from exact_resume.checkpoints.checkpoints import Best, Checkpoint
from exact_resume.checkpoints.lease import LEASE_FILE, Followed, Lease, NotHolder
from exact_resume.files import storage, this_process, versioned
from exact_resume.files.bucket_errors import Replaced
from exact_resume.files.publication import Fence
from vertex_testing.cloud_storage.server import CloudStorage

HOLDER = """
import sys, time
from exact_resume.checkpoints import lease
lease.HEARTBEAT_SECONDS = 0.1
held = lease.Lease(sys.argv[1], sys.argv[2])
held.take({"seed": 0})
held.keep(lambda error: None)
print("taken", flush=True)
time.sleep(600)
"""


@pytest.fixture(params=["local", "gs"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty checkpoint folder."""
    if request.param == "local":
        return str(tmp_path)
    request.getfixturevalue("server")
    return "gs://b/run"


@pytest.fixture(autouse=True)
def short_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "WATCH_SECONDS", 1.5)


@contextlib.contextmanager
def holder(directory: str, job: str) -> Iterator["subprocess.Popen[str]"]:
    """A process that holds the lease."""
    words = [sys.executable, "-c", HOLDER, directory, job]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "taken\n"
        try:
            yield process
        finally:
            process.kill()


def content(directory: str) -> dict[str, bytes]:
    return {name: storage.read_bytes(storage.join(directory, name)) for name in storage.names(directory)}


def as_on_another_machine(directory: str) -> None:
    """Change the lease so that nothing is known about its process here."""
    path = storage.join(directory, LEASE_FILE)
    found = seal.without(storage.read_json(path))
    storage.write_json(path, seal.add_seal({**found, "process": {**found["process"], "boot": "another"}}))


def checkpoint(step: int) -> Checkpoint:
    return Checkpoint(step=step, best=Best(), identity={}, run_id="abc", arrays=[])


def test_another_job_leaves_a_live_holder_alone_and_changes_nothing(tmp_path: Path) -> None:
    said: list[str] = []
    with holder(str(tmp_path), "first") as process:
        before = content(str(tmp_path))
        second = Lease(str(tmp_path), "second", report=said.append)
        with pytest.raises(NotHolder, match=r"is training in .*; nothing was changed here") as raised:
            second.watch()
        with pytest.raises(NotHolder):
            second.take({"seed": 0})
        assert content(str(tmp_path)) == before
        assert process.poll() is None
    assert str(raised.value).startswith(f"job first (process {process.pid} on ")
    assert "watching its heartbeat for 1.5 s" in said[0]


def test_another_job_takes_over_when_the_heartbeat_stands_still(directory: str) -> None:
    said: list[str] = []
    with holder(directory, "first") as process:
        process.send_signal(signal.SIGSTOP)
        second = Lease(directory, "second", report=said.append)
        second.watch()
        second.take({})
        assert [text.split("; ")[-1].split(" ")[0] for text in said] == ["watching", "taking"]
        process.send_signal(signal.SIGCONT)
        second.check()


def test_a_live_holder_in_a_bucket_is_left_alone(server: CloudStorage) -> None:
    with holder("gs://b/run", "first"), pytest.raises(NotHolder):
        Lease("gs://b/run", "second").watch()


def test_without_linux_a_live_holder_is_left_alone_and_a_killed_one_replaced_after_the_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXACT_RESUME_PORTABLE", "1")
    assert this_process.describe().keys() == {"host", "pid"}
    said: list[str] = []
    with holder(str(tmp_path), "first") as process:
        with pytest.raises(NotHolder, match="its heartbeat continues"):
            Lease(str(tmp_path), "second").take({})
        process.kill()
        process.wait()
        Lease(str(tmp_path), "second", report=said.append).take({})
    assert [text.split("; ")[-1].split(" ")[0] for text in said] == ["watching", "taking"]


def test_a_restart_of_the_same_job_takes_over_at_once(directory: str) -> None:
    said: list[str] = []
    with holder(directory, "job"):
        second = Lease(directory, "job", report=said.append)
        second.watch()
        second.take({})
        second.beat()
        second.check()
    assert said == []


def test_a_process_that_has_ended_here_is_not_waited_for(directory: str) -> None:
    said: list[str] = []
    with holder(directory, "") as process:
        pass
    assert process.returncode == -signal.SIGKILL
    Lease(directory, "other", report=said.append).take({})
    assert said == []


def test_one_that_was_killed_on_another_machine_is_waited_for(directory: str) -> None:
    said: list[str] = []
    with holder(directory, "first"):
        pass
    as_on_another_machine(directory)
    Lease(directory, "other", report=said.append).take({})
    assert len(said) == 2


@pytest.mark.parametrize(
    "damage", [b"", b"{}", b"[" * 100_000, b'{"token": 3, "seal": "x"}', b'{"process": {"pid": "x"}}']
)
def test_a_damaged_lease_is_watched_before_it_is_taken(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / LEASE_FILE).write_bytes(damage)
    said: list[str] = []
    second = Lease(str(tmp_path), "job", report=said.append)
    second.take({})
    second.check()
    assert said[0].startswith("another process holds ")


@pytest.mark.parametrize("has_checkpoint", [True, False])
def test_a_lease_that_is_released_while_it_is_watched_is_free(directory: str, *, has_checkpoint: bool) -> None:
    first = Lease(directory, "first")
    first.take({})
    second = Lease(directory, "second", pause=lambda seconds: first.release(has_checkpoint=has_checkpoint))
    second.take({})
    second.check()
    second.release()
    assert storage.names(directory) == []


def test_a_former_holder_neither_beats_nor_checks_nor_releases(directory: str) -> None:
    first, second = Lease(directory, "job"), Lease(directory, "job")
    first.take({})
    first.beat()
    second.take({})
    for refused in (first.check, first.beat, first.may_write):
        with pytest.raises(NotHolder, match=r"job job .* has taken over the run in "):
            refused()
    first.release()
    second.check()
    second.release()
    # Released by its successor, it is still lost.
    for refused in (first.check, first.beat):
        with pytest.raises(NotHolder):
            refused()
    assert storage.names(directory) == []


def test_the_heartbeat_finds_the_loss(directory: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "HEARTBEAT_SECONDS", 0.05)
    lost, errors = threading.Event(), list[NotHolder]()
    first = Lease(directory, "job")
    first.take({})
    first.keep(lambda error: (errors.append(error), lost.set()))
    Lease(directory, "job").take({})
    assert lost.wait(60)
    assert "has taken over" in str(errors[0])


def test_of_two_jobs_that_take_a_free_directory_together_one_is_refused(directory: str) -> None:
    path = storage.join(directory, LEASE_FILE)
    free = versioned.read(path)
    versioned.replace(path, b"first", free)
    with pytest.raises(Replaced):
        versioned.replace(path, b"second", free)
    assert versioned.read(path).content == b"first"


def successor(directory: str, former: Lease) -> None:
    """Take over at the worst moment: the former holder has just been told that it may commit."""
    former.check()
    Lease(directory, "job").take({})
    storage.remove_partial(directory)


@pytest.mark.parametrize("is_new", [True, False])
def test_a_former_holder_that_has_passed_the_check_commits_no_checkpoint(directory: str, *, is_new: bool) -> None:
    former = Lease(directory, "job")
    former.take({})
    if not is_new:
        checkpoints.save(directory, checkpoint(5))
    fence = Fence(folder=directory, confirm=lambda: successor(directory, former))
    changed = Checkpoint(step=5, best=Best(step=3), identity={}, run_id="abc", arrays=[])
    with pytest.raises((FileNotFoundError, Replaced)):
        checkpoints.save(directory, changed, fence)
    assert checkpoints.steps(directory) == ([] if is_new else [5])
    assert is_new or checkpoints.load(directory, 5).best == Best()
    assert not [name for name in storage.names(directory) if name.endswith(".partial")]


def test_a_former_holder_writes_no_result(directory: str) -> None:
    former = Lease(directory, "job")
    former.take({})
    Lease(directory, "job").take({})
    with pytest.raises(NotHolder):
        former.fence.write(storage.join(directory, "result.json"), b"{}")
    fence = Fence(folder=directory, confirm=lambda: storage.remove_partial(directory))
    with pytest.raises((FileNotFoundError, Replaced)):
        fence.write(storage.join(directory, "result.json"), b"{}")
    assert storage.names(directory) == [LEASE_FILE]


def test_a_heartbeat_needs_no_room_on_a_disk(tmp_path: Path) -> None:
    first, path = Lease(str(tmp_path), "first"), tmp_path / LEASE_FILE
    first.take({})
    os.utime(path, (1, 1))
    before = path.stat()
    first.beat()
    after = path.stat()
    assert (after.st_ino, after.st_size, after.st_mtime > before.st_mtime) == (before.st_ino, before.st_size, True)


def test_the_other_machines_of_a_job_follow_its_chief(tmp_path: Path) -> None:
    follower, unknown = Followed(str(tmp_path), "job"), Followed(str(tmp_path), "")
    former = Lease(str(tmp_path), "another")
    former.take({})
    # Until its chief has taken the lease from the job before.
    assert (follower.may_write(), unknown.may_write()) == (False, True)
    former.release()
    own = Lease(str(tmp_path), "job")
    own.take({})
    assert follower.may_write()
    own.release(has_checkpoint=True)
    assert follower.may_write()
    former = Lease(str(tmp_path), "another")
    former.take({})
    former.release(has_checkpoint=True)
    assert unknown.may_write()
    with pytest.raises(NotHolder, match="job another"):
        follower.may_write()


def test_a_process_is_known_to_have_ended_only_on_its_own_machine() -> None:
    own = this_process.describe()
    assert not this_process.has_ended(own)
    with subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import json; from exact_resume.files import this_process;print(json.dumps(this_process.describe()))",
        ],
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout
        ended = json.loads(process.stdout.read())
    assert this_process.has_ended(ended)
    assert this_process.has_ended({**own, "started": "1"}), "its number belongs to another process"
    assert this_process.has_ended({**ended, "namespace": "x"}), "with process ids of its own it holds a name"
    for unknown in (
        {},
        {**ended, "boot": "x"},
        {**ended, "namespace": "x", "network": "x"},
        {**own, "namespace": "x"},
        {**ended, "pid": "7"},
        {**ended, "pid": -1},
        {**ended, "started": None},
        {"host": own["host"], "pid": ended["pid"]},
    ):
        assert not this_process.has_ended(unknown), unknown
