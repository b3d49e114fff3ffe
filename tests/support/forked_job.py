"""A training job whose workers are forked from this process, which has imported TensorFlow: it starts in a second.

The periods of the lease and the limits of a start are short. A worker may have a deed that it does to itself.
"""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# `roles` imports TensorFlow before `task` sets the environment for --exact.
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

from exact_resume.checkpoints import lease
from exact_resume.files import publication
from tests.support.job import Job
from trainer import command_line, task
from trainer.loop import roles as roles, training

HEARTBEAT_SECONDS, WATCH_SECONDS = 0.5, 5.0
"""Periods of the lease; a loaded machine delays the heartbeat."""
CONNECT_SECONDS = 30

Deed = Callable[[], None]


class ForkedJob(Job):
    """A job of forked processes, or of newly started programs."""

    def __init__(
        self,
        folder: Path,
        arguments: Sequence[str],
        num_workers: int,
        *,
        job_id: str,
        deed: Deed | None = None,
        is_forked: bool = True,
    ) -> None:
        """Describe the job.

        Args:
            folder: Checkpoint folder; the logs are beside it.
            arguments: Of `trainer.task`.
            num_workers: Number of workers with the chief.
            job_id: The service's id of the job.
            deed: Called in the chief before it trains; only in a forked one.
            is_forked: False: each worker is a program, which imports TensorFlow itself.
        """
        super().__init__(folder, arguments, num_workers)
        self._is_forked, self._deed = is_forked, deed
        self.environment_of = lambda place: {"CLOUD_ML_JOB_ID": job_id}
        if not is_forked:
            self.module = "tests.support.short_lease"
            self.arguments = [str(HEARTBEAT_SECONDS), str(WATCH_SECONDS), "--", *arguments]
        self._offsets = {path: path.stat().st_size for path in folder.parent.glob(f"{folder.name}-*.log")}

    def start_process(self, place: int, words: Sequence[str], environment: dict[str, str], log: Any) -> Any:
        """Fork a worker."""
        if not self._is_forked:
            return super().start_process(place, words, environment, log)
        sys.stdout.flush()
        if pid := os.fork():
            return Forked(pid)
        os.environ.clear()
        os.environ.update(environment)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        code = 70
        try:
            code = _train(list(words), self._deed if place == 0 else None)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def said(self, place: int) -> str:
        """Return what a worker has printed since this object was made."""
        path = self.folder.parent / f"{self.folder.name}-{place}.log"
        return path.read_bytes()[self._offsets.get(path, 0) :].decode(errors="replace")


class Forked:
    """A forked process, with the methods of `subprocess.Popen` that `Job` calls."""

    def __init__(self, pid: int) -> None:
        self.pid, self.returncode = pid, None

    def poll(self) -> int | None:
        """Return the exit code, None while it runs; minus the number of a signal."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self) -> int:
        """Wait for the end and return the exit code."""
        while (code := self.poll()) is None:
            time.sleep(0.02)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it, unless it has ended."""
        self.send_signal(signal.SIGKILL)


def _train(words: list[str], deed: Deed | None) -> int:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    lease.HEARTBEAT_SECONDS, lease.WATCH_SECONDS = HEARTBEAT_SECONDS, WATCH_SECONDS
    training._CONNECT_SECONDS = CONNECT_SECONDS
    # Errors about a path are user errors if an argument names it.
    sys.argv = ["task", *words]
    if deed:
        deed()
    return command_line.run(lambda: task.main(words))


def wait_in_save(path: Path) -> Deed:
    """Return a deed: each save waits in the background until a file exists."""
    flush = publication._flush_to_disk

    def flush_and_wait(directory: Path) -> None:
        flush(directory)
        while not path.exists():
            time.sleep(0.05)

    return lambda: setattr(publication, "_flush_to_disk", flush_and_wait)


def kill_at(owner: Any, name: str, *, after: bool, call: int) -> Deed:
    """Return a deed: the process kills itself before or after a call of a function, the first one being 1."""
    original, calls = getattr(owner, name), list[int]()

    def killing(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) == call and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(*arguments, **options)
        if len(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return lambda: setattr(owner, name, killing)
