"""A training job of several workers on this machine, restarted as on Vertex AI: all of them when one is lost."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from exact_resume.events import log as event_log
from tests.support.forks import Fork

SECONDS = 400
"""Longer than any of these jobs takes, even on a loaded machine."""
EXACT_RUN = [
    "--exact",
    "--epochs=12",
    "--global-batch-size=32",
    "--checkpoint-every-steps=4",
    "--checkpoint-every-seconds=0",
    "--augment=flip-and-shift",
]
"""Arguments of the runs that the resume tests compare bit by bit."""
EXACT_RUN_STEPS = 84
"""Their number of steps on the 300 digits: 12 epochs of 7."""


class Job:
    """Processes of `trainer.task`, one per worker; the first is the chief."""

    def __init__(self, folder: Path, arguments: Sequence[str], num_workers: int = 1, *others: str) -> None:
        """Name the tasks: a chief, the workers, and others (`ps` or `evaluator`)."""
        self.folder, self.arguments = folder, list(arguments)
        kinds = ["chief", *["worker"] * (num_workers - 1), *others]
        self.tasks = [(kind, kinds[:place].count(kind)) for place, kind in enumerate(kinds)]
        self._ports: list[int] = []
        self.arguments_of: Callable[[int], list[str]] = lambda place: []
        """Further arguments of one worker, by its index."""
        self.environment_of: Callable[[int], dict[str, str]] = lambda place: {}
        """Further environment variables of one worker, by its index."""
        self.module = "trainer.task"
        self.script: list[str] = []
        """A program with its first arguments instead of the module."""
        self.forks = False
        """Whether workers are forked with TensorFlow imported, which starts them in half the processor time."""
        self.workers: list[subprocess.Popen[bytes]] = []
        self.exit_codes: list[list[int | None]] = []
        """Exit codes per attempt, in the order of the workers; None for one that was still running at the end."""

    def start(self) -> None:
        """Start every worker."""
        self._ports = free_ports(len(self.tasks))
        self.workers = [self.start_worker(place) for place in range(len(self.tasks))]

    def start_worker(self, place: int) -> "subprocess.Popen[bytes]":
        """Start one worker, at its previous address."""
        cluster: dict[str, list[str]] = {}
        for (kind, _), port in zip(self.tasks, self._ports, strict=True):
            if kind != "evaluator":
                cluster.setdefault(kind, []).append(f"127.0.0.1:{port}")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("AIP_", "TF_CONFIG", "CLUSTER_"))}
        if len(self.tasks) > 1:
            kind, index = self.tasks[place]
            environment["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})
        environment.update(self.environment_of(place))
        with (self.folder.parent / f"{self.folder.name}-{place}.log").open("ab") as log:
            return self.start_process(place, [*self.arguments, *self.arguments_of(place)], environment, log)

    def start_process(self, place: int, words: Sequence[str], environment: dict[str, str], log: IO[bytes]) -> Any:
        """Start the program of one worker with these arguments."""
        del place
        if self.forks:
            return Fork(self.module, words, environment, *[Path(log.name)] * 2)
        program = self.script or ["-m", self.module]
        return subprocess.Popen([sys.executable, *program, *words], env=environment, stdout=log, stderr=log)

    def wait(self, *, until: Callable[[], bool] = lambda: False, seconds: float = SECONDS) -> None:
        """Wait until a worker has failed, all have finished, or a condition holds."""
        deadline = time.monotonic() + seconds
        while not until():
            codes = [worker.poll() for worker in self.workers]
            if any(codes) or all(code == 0 for code in codes):
                return
            assert time.monotonic() < deadline, f"still running after {seconds} s\n{self.logs()}"
            time.sleep(0.02)

    def wait_for_all(self, seconds: float = SECONDS) -> list[int | None]:
        """Return the exit codes of all workers, None for one that is still running after `seconds`."""
        deadline = time.monotonic() + seconds
        while any(worker.poll() is None for worker in self.workers) and time.monotonic() < deadline:
            time.sleep(0.02)
        return [worker.poll() for worker in self.workers]

    def end(self) -> None:
        """Record the exit codes and kill the workers that still run."""
        self.exit_codes.append([worker.poll() for worker in self.workers])
        for worker in self.workers:
            with contextlib.suppress(ProcessLookupError):
                worker.kill()
            worker.wait()

    def run(self, max_attempts: int = 5) -> None:
        """Start the job, and restart it until it has finished."""
        for _ in range(max_attempts):
            self.start()
            self.wait()
            self.wait_for_all()
            self.end()
            if not any(self.exit_codes[-1]):
                return
        raise AssertionError(f"not finished after {max_attempts} attempts: {self.exit_codes}\n{self.logs()}")

    def run_until_step(self, step: int, then: Callable[["Job"], None]) -> None:
        """Start the job, call `then` when the chief has reached the step, wait for the failure, and end all workers."""
        num_starts = self._num_starts()
        self.start()
        try:
            # Until the new process has logged its start, the last step belongs to the previous process.
            self.wait(until=lambda: self._num_starts() > num_starts and self.last_step() >= step)
            assert self.last_step() >= step, self.logs()
            then(self)
            self.wait_for_all()
        finally:
            self.end()

    def last_step(self) -> int:
        """Return the last step that the chief has reported since its latest start."""
        last = 0
        for event in self.events():
            if event["event"] == "start":
                last = 0
            last = event["last_step"] if event["event"] == "steps" else last
        return last

    def _num_starts(self) -> int:
        return sum(event["event"] == "start" for event in self.events())

    def events(self, replica: str = "workerpool0-0") -> list[dict[str, Any]]:
        """Return the event log of a worker."""
        return [event for event in event_log.read(str(self.folder)) if event["replica"] == replica]

    def notices(self, replica: str = "workerpool0-0") -> str:
        """Return the messages in a worker's event log, one per line."""
        return "\n".join(event["message"] for event in self.events(replica) if event["event"] == "notice")

    def result(self) -> dict[str, Any]:
        """Return the content of result.json."""
        return json.loads((self.folder / "result.json").read_text())

    def logs(self) -> str:
        """Return the end of each worker's output."""
        paths = sorted(self.folder.parent.glob(f"{self.folder.name}-*.log"))
        return "\n".join(f"--- {path.name}\n{path.read_text()[-3000:]}" for path in paths)


def kill(worker: int, number: int = signal.SIGKILL) -> Callable[[Job], None]:
    """Return a function that sends a signal to a worker."""
    return lambda job: job.workers[worker].send_signal(number)


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
