"""The lock of the registry ends with its process, waits can be stopped, and two processes never have it."""

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from localvertex.store.record import PRIVATE
from localvertex.store.registry_lock import locked

HOLD = """
import sys
from pathlib import Path
from localvertex.store.registry_lock import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


class Stopped(Exception):
    pass


def stop() -> None:
    raise Stopped


@contextmanager
def holder(work_dir: Path) -> Iterator["subprocess.Popen[str]"]:
    """Start a process that holds the lock until its input ends."""
    command = [sys.executable, "-c", HOLD, str(work_dir)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_the_lock_ends_with_its_process_and_a_wait_for_it_can_be_stopped(tmp_path: Path) -> None:
    with holder(tmp_path / "runs") as process:
        with pytest.raises(Stopped), locked(tmp_path / "runs", stop):
            pass
        # Another work folder has another lock.
        with locked(tmp_path / "others", stop):
            pass
        process.kill()
        process.wait()
        with locked(tmp_path / "runs", stop):
            pass


def is_free(work_dir: Path) -> bool:
    """Return whether another thread can take the lock now."""
    taken: list[Path] = []

    def take() -> None:
        with suppress(Stopped), locked(work_dir, stop):
            taken.append(work_dir)

    thread = threading.Thread(target=take)
    thread.start()
    thread.join()
    return bool(taken)


def test_a_thread_takes_the_lock_again_and_another_one_waits(tmp_path: Path) -> None:
    with locked(tmp_path):
        with locked(tmp_path / ".." / tmp_path.name, stop):
            assert not is_free(tmp_path)
        assert not is_free(tmp_path)
    assert is_free(tmp_path)


def test_a_lock_whose_file_was_removed_is_not_taken_twice(tmp_path: Path) -> None:
    def remove_and_release() -> None:
        shutil.rmtree(tmp_path / PRIVATE, ignore_errors=True)
        process.kill()
        process.wait()

    with holder(tmp_path) as process, locked(tmp_path, remove_and_release):
        assert not is_free(tmp_path)
