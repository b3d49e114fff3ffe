"""The processes of a run: each under a supervisor of its own, all of them stopped together."""

import socket
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from pathlib import Path

from localvertex.errors import Cancelled, TaskFailed

SUPERVISOR = str(Path(__file__).with_name("supervisor.py"))

STOP = 0
"""No signal: the supervisor is to end the command, see supervisor.py."""

MAX_ARGUMENT_BYTES = 131_072
"""Linux refuses longer single arguments (MAX_ARG_STRLEN, 32 pages)."""


class Process(ABC):
    """One running command. Closing its lifeline stops it and everything it started."""

    def __init__(self, lifeline: socket.socket) -> None:
        self._lifeline = lifeline
        self._lock = threading.Lock()

    @abstractmethod
    def wait(self) -> int:
        """Waits for the end; the command's exit code, 128 + signal when a signal ended it."""

    def stop(self) -> None:
        """SIGTERM now, SIGKILL after the grace time; returns at once."""
        self.signal(STOP)

    def signal(self, number: int) -> None:
        """Passes a signal on to the command's process group."""
        with self._lock:
            try:
                self._lifeline.send(bytes([number]))
            except OSError:
                pass  # It has ended already.

    def close(self) -> None:
        """Lets go of a process that has ended."""
        with self._lock:
            self._lifeline.close()


class Executed(Process):
    """A command that a new supervisor executes."""

    def __init__(
        self, command: list[str], *, cwd: Path, env: dict[str, str], log: Path, grace_seconds: float, hold: int | None
    ) -> None:
        ours, theirs = socket.socketpair()
        super().__init__(ours)
        kept = [theirs.fileno()] if hold is None else [theirs.fileno(), hold]
        supervisor = [sys.executable, "-I", "-S", SUPERVISOR, ",".join(map(str, kept)), str(grace_seconds)]
        try:
            with log.open("ab") as file:
                self._process = subprocess.Popen(
                    [*supervisor, *command],
                    cwd=cwd,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    pass_fds=kept,
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            # ValueError: a null byte in an argument, or an impossible name of an environment variable.
            ours.close()
            raise TaskFailed(f"cannot start {command[0]}: {error}", is_retryable=False) from None
        finally:
            theirs.close()

    def wait(self) -> int:
        """Waits for the supervisor, which ends with the command's code."""
        code = self._process.wait()
        self.close()
        return code if code >= 0 else 128 - code


class Processes:
    """All processes of a run."""

    def __init__(self, *, grace_seconds: float) -> None:
        self.grace_seconds = grace_seconds
        self.hold: int | None = None
        """File descriptor of the run's lock: it stays taken until the last supervisor has ended."""
        self._lock = threading.Lock()
        self._running: set[Process] = set()
        self.stopped = threading.Event()
        """Set when `stop` is called; to be read only."""

    def run(self, command: list[str], *, cwd: Path, env: dict[str, str], log: Path) -> int:
        """Runs a command to its end and returns its exit code.

        Raises:
            Cancelled: the run was stopped before or while the command ran.
            TaskFailed: the command cannot be started.
        """
        code = self.wait(self.start(command, cwd=cwd, env=env, log=log))
        self.check_stopped()
        return code

    def wait(self, process: Process) -> int:
        """Waits for the end of a process that `start` returned; its exit code."""
        code = process.wait()
        with self._lock:
            self._running.discard(process)
        return code

    def start(self, command: list[str], *, cwd: Path, env: dict[str, str], log: Path) -> Process:
        """Starts a command that `stop` will end.

        Raises:
            Cancelled: the run is being stopped.
            TaskFailed: an argument is too long, or the program cannot be started.
        """
        check_arguments(command)
        with self._lock:
            self.check_stopped()
            process = Executed(command, cwd=cwd, env=env, log=log, grace_seconds=self.grace_seconds, hold=self.hold)
            self._running.add(process)
        return process

    def add(self, process: Process) -> None:
        """Takes in a process that was started elsewhere, for `stop` to end; at once when the run is being stopped."""
        with self._lock:
            self._running.add(process)
            if self.stopped.is_set():
                process.stop()

    def check_stopped(self) -> None:
        """For those that wait for something other than a process.

        Raises:
            Cancelled: the run is being stopped.
        """
        if self.stopped.is_set():
            raise Cancelled

    def stop(self, *, at_once: bool = False) -> None:
        """Ends every process; with `at_once` by SIGKILL. Nothing can be started afterwards."""
        with self._lock:
            self.stopped.set()
            for process in self._running:
                if at_once:
                    process.signal(9)
                process.stop()


def check_arguments(command: list[str]) -> None:
    """Refuses what no program can be started with.

    Raises:
        TaskFailed: an argument is too long, or is no text.
    """
    try:
        longest = max(len(argument.encode()) for argument in command)
    except UnicodeEncodeError:
        raise TaskFailed("an argument of the command holds half a character", is_retryable=False) from None
    if longest >= MAX_ARGUMENT_BYTES:
        raise TaskFailed(
            f"the inputs make a command-line argument of {longest} bytes, the system allows {MAX_ARGUMENT_BYTES}; "
            "hand large values over as artifacts",
            is_retryable=False,
        )
