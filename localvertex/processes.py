"""The processes of a run: each under a supervisor of its own, all of them stopped together."""

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path

from localvertex.errors import Cancelled, TaskFailed

SUPERVISOR = str(Path(__file__).with_name("supervisor.py"))

MAX_ARGUMENT_BYTES = 131_072
"""Linux refuses longer single arguments (MAX_ARG_STRLEN, 32 pages)."""


class Process:
    """One running command. Closing its lifeline stops it and everything it started."""

    def __init__(self, command: list[str], *, cwd: Path, env: dict[str, str], log: Path, grace_seconds: float) -> None:
        reader, self._lifeline = os.pipe()
        self._lock = threading.Lock()
        supervisor = [sys.executable, "-I", "-S", SUPERVISOR, str(reader), str(grace_seconds)]
        try:
            with log.open("ab") as file:
                self._process = subprocess.Popen(
                    [*supervisor, *command],
                    cwd=cwd,
                    env=env,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    pass_fds=[reader],
                    start_new_session=True,
                )
        except (OSError, ValueError) as error:
            # ValueError: a null byte in an argument, or an impossible name of an environment variable.
            self.stop()
            raise TaskFailed(f"cannot start {command[0]}: {error}", is_retryable=False) from None
        finally:
            os.close(reader)

    def wait(self) -> int:
        """Waits for the end; the command's exit code, 128 + signal when a signal ended it."""
        code = self._process.wait()
        self.stop()
        return code if code >= 0 else 128 - code

    def stop(self) -> None:
        """SIGTERM now, SIGKILL after the grace time; returns at once."""
        with self._lock:
            if self._lifeline >= 0:
                os.close(self._lifeline)
                self._lifeline = -1

    def signal(self, number: int) -> None:
        """Passes a signal on to the command's process group."""
        with self._lock:
            if self._lifeline >= 0:
                # The command may have ended just now, and its supervisor with it.
                with contextlib.suppress(BrokenPipeError):
                    os.write(self._lifeline, bytes([number]))


class Processes:
    """All processes of a run."""

    def __init__(self, *, grace_seconds: float) -> None:
        self._grace_seconds = grace_seconds
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
        with self._lock:
            if self.stopped.is_set():
                raise Cancelled
            process = Process(command, cwd=cwd, env=env, log=log, grace_seconds=self._grace_seconds)
            self._running.add(process)
        return process

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
