"""The processes of a run: each has its own supervisor, and all are stopped together."""

import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from localvertex._base import linux
from localvertex.errors import Cancelled, TaskFailed
from localvertex.processes import sinks
from localvertex.processes.forking import CommandProgram, Fork, ForkServer, PythonProgram, can_fork
from localvertex.processes.masks.mask import Covered, Mask
from localvertex.processes.sinks import Sink

_SUPERVISOR = str(Path(__file__).with_name("supervisor.py"))

_KILLED = 137
"""Exit code of a killed supervisor: the process that a fork's mask holds ends without an error."""

_MAX_SECONDS_TO_END = 10.0
"""Limit for bubblewrap, inside and outside of its mask, to end after the supervisor."""

_STOP = 0
"""Not a signal: the supervisor ends the command, see supervisor.py."""

_NUMBERS, _NUM_NUMBERS, _STRIDE, _FORKED_STRIDE = itertools.count(), 16, 8, 3
"""Give 16 consecutive processes behind the mask different ids, although a few programs run before each of them.

TensorFlow, for example, names its event files by the id. No shell runs before a fork, and a skipped id takes time."""

MAX_ARGUMENT_BYTES = 131_072
"""Linux refuses longer single arguments (MAX_ARG_STRLEN, 32 pages)."""


class Process:
    """One running command under a supervisor. Closing its lifeline stops it and everything it started."""

    def __init__(
        self,
        command: list[str],
        *,
        cwd: Path,
        covered: Covered,
        sink: Sink,
        grace_seconds: float,
        holds: Sequence[int],
        clean_up: list[str],
        fork: Fork | None,
    ) -> None:
        self._lifeline, other_end = socket.socketpair()
        self._sink, self._lock = sink, threading.Lock()
        self._stand_in = covered.stand_in
        self.num_left = 0
        """Processes that were alive when the command had ended, and that its supervisor ended then."""
        self.peak_bytes = 0
        """The most memory that its processes had together, when it has ended; 0 if unknown."""
        self.discarded: list[str] = []
        """A line for each entry of the work folder that was not its to write, when it has ended."""
        kept = [other_end.fileno(), *holds]
        kept += [self._stand_in.lock] if self._stand_in else []
        number = next(_NUMBERS) % _NUM_NUMBERS if covered.words else 0
        supervisor = [*covered.words, sys.executable, "-I", "-S", _SUPERVISOR, ",".join(map(str, kept))]
        supervisor += [f"{grace_seconds},{number * _STRIDE}", str(len(clean_up)), *clean_up]
        try:
            forked = fork and fork(
                cwd=cwd,
                covered=covered,
                fds=[sink.fd, other_end.fileno()],
                kept=kept[1:],
                grace_seconds=grace_seconds,
                num_skipped_ids=number * _FORKED_STRIDE,
            )
            self._process = (
                forked.mask
                if forked
                else subprocess.Popen(
                    [*supervisor, *command],
                    cwd=cwd,
                    env=covered.env,
                    stdin=subprocess.DEVNULL,
                    stdout=sink.fd,
                    stderr=subprocess.STDOUT,
                    pass_fds=kept,
                    start_new_session=True,
                )
            )
        except (OSError, ValueError) as error:
            # ValueError: a null byte in an argument, or an invalid name of an environment variable.
            self._lifeline.close()
            self._collect()
            raise TaskFailed(f"cannot start {command[0]}: {error}", exit_code=127, is_retryable=False) from None
        finally:
            other_end.close()
        self._is_forked = forked is not None
        self._pid = forked.pid if forked else self._process.pid if self._process else 0

    def is_frozen(self) -> bool:
        """Return whether the command, or a process that it started, is stopped, as by SIGSTOP; False if unknown."""
        return linux.is_frozen(self._pid)

    def wait(self) -> int:
        """Wait for the end and return the command's exit code, 128 + signal when a signal ended it."""
        report = b""
        with suppress(OSError):
            while part := self._lifeline.recv(64):
                report = part
        with self._lock:
            self._lifeline.close()
        code = 0 if self._is_forked else self._end()
        if report:
            self.num_left, self.peak_bytes, code = map(int, report.split(b","))
        # A supervisor that was killed has written nothing.
        code = code if report else code or _KILLED
        self._sink.wait()
        self._collect()
        return code if code >= 0 else 128 - code

    def release(self, *, is_wanted: bool) -> bool:
        """Return whether nothing is left of a process that has ended, not even its mask; wait for that if it is wanted.

        The kernel needs some milliseconds to remove a mask, for which a step need not wait.
        """
        if is_wanted:
            self._end()
        return not self._process or self._process.poll() is not None

    def _end(self) -> int:
        """Wait for the processes of a mask, whose supervisor has ended; kill those that are frozen."""
        if not self._process:
            return 0
        try:
            return self._process.wait(_MAX_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            for each in linux.descendants(self._process.pid):
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            self._process.kill()
            return self._process.wait()

    def _collect(self) -> None:
        if self._stand_in:
            self.discarded = self._stand_in.collect()

    def stop(self, *, at_once: bool = False) -> None:
        """Send SIGTERM now and SIGKILL after the grace time, or SIGKILL now, without waiting."""
        if at_once:
            self.signal(9)
        self.signal(_STOP)

    def signal(self, number: int) -> None:
        """Send a signal to the command's process group."""
        with self._lock:
            try:
                self._lifeline.send(bytes([number]))
            except OSError:
                pass  # The process has already ended.


class Processes:
    """All processes of a run."""

    def __init__(
        self,
        *,
        grace_seconds: float,
        holds: Sequence[int] = (),
        secrets: Callable[[], list[str]] = list,
        mask: Mask | None = None,
    ) -> None:
        self.grace_seconds = grace_seconds
        self.holds = [*holds]
        """File descriptors of locks, such as the run's, which the last supervisor to end releases."""
        self.secrets = secrets
        """Returns the texts that must not get into a log."""
        self.mask = mask or Mask(is_wanted=False)
        """The part of this machine that commands see, except commands with a sandbox of their own."""
        self._lock = threading.Lock()
        self._server: ForkServer | None = None
        self._branches: list[Processes] = []
        self._ended: list[Process] = []
        """Those whose mask may not be gone yet."""
        self._is_at_once = False
        self._running: set[Process] = set()
        self.num_left = 0
        """Processes that commands which have ended had left; see `Process`."""
        self.stopped = threading.Event()
        """Set when `stop` is called; read-only for callers."""

    def branch(self, hold: int) -> "Processes":
        """Return processes that can be stopped by themselves, and that are stopped with these.

        Args:
            hold: File descriptor of a further lock, which they hold besides that of these.
        """
        branch = Processes(
            grace_seconds=self.grace_seconds, holds=[*self.holds, hold], secrets=self.secrets, mask=self.mask
        )
        with self._lock:
            self._branches.append(branch)
            if self.stopped.is_set():
                branch.stop(at_once=self._is_at_once)
        return branch

    def run(
        self, command: list[str], *, cwd: Path, env: dict[str, str], log: Path, writable: Sequence[Path] = ()
    ) -> int:
        """Run a command to its end and return its exit code; `writable` are further folders that it may write.

        Raises:
            Cancelled: The run was stopped before or while the command ran.
            TaskFailed: The command cannot be started.
        """
        code = self.wait(self.start(command, cwd=cwd, env=env, log=log, writable=writable))
        self.check_stopped()
        return code

    def wait(self, process: Process) -> int:
        """Wait for the end of a process that `start` returned, and return its exit code."""
        code = process.wait()
        with self._lock:
            self._running.discard(process)
            self.num_left += process.num_left
            self._ended = [
                each for each in (*self._ended, process) if not each.release(is_wanted=self.stopped.is_set())
            ]
        return code

    def start(
        self,
        command: list[str],
        *,
        cwd: Path,
        env: dict[str, str],
        log: Path,
        clean_up: list[str] | None = None,
        has_mask: bool = True,
        writable: Sequence[Path] = (),
        program: PythonProgram | None = None,
        supervisors: ForkServer | None = None,
    ) -> Process:
        """Start a command that `stop` will end.

        Args:
            command: The command.
            cwd: Its working directory.
            env: Its variables.
            log: The file for its output.
            clean_up: A command that runs when it has ended in any way.
            has_mask: Whether it runs behind the mask.
            writable: Folders of the work folder that it may write, besides its working directory.
            program: What the command does, if it can be forked.
            supervisors: Forks the supervisor of the command, which starts its own program.

        Raises:
            Cancelled: The run is being stopped.
            TaskFailed: An argument is too long, or the program cannot be started.
        """
        _check_arguments(command)
        self.check_stopped()
        fork = self._fork(program, env) if program and linux.is_used() else None
        if supervisors and not clean_up:
            fork = partial(supervisors.fork, CommandProgram(words=(*command,)), env)
        with sinks.opened(log, self.secrets(), self.holds) as sink:
            mask = self.mask if has_mask else Mask(is_wanted=False)
            process = Process(
                command,
                cwd=cwd,
                covered=mask.cover(command, cwd=cwd, env=env, writable=writable),
                fork=fork,
                sink=sink,
                grace_seconds=self.grace_seconds,
                holds=self.holds,
                clean_up=clean_up or [],
            )
        # A mask takes some ten milliseconds, in which other steps start.
        with self._lock:
            self._running.add(process)
            if self.stopped.is_set():
                process.stop(at_once=self._is_at_once)
        return process

    def _fork(self, program: PythonProgram, env: dict[str, str]) -> Fork | None:
        with self._lock:
            if self.stopped.is_set() or not can_fork(env):
                return None
            self._server = self._server or ForkServer(env)
            return partial(self._server.fork, program, env)

    def check_stopped(self) -> None:
        """Check for a stop while waiting for something other than a process.

        Raises:
            Cancelled: The run is being stopped.
        """
        if self.stopped.is_set():
            raise Cancelled

    def stop(self, *, at_once: bool = False) -> None:
        """End every process, with `at_once` by SIGKILL. No process can be started afterwards."""
        with self._lock:
            self.stopped.set()
            self._is_at_once = at_once
            if self._server:
                self._server.close()
            for process in self._running:
                process.stop(at_once=at_once)
            for process in self._ended:
                process.release(is_wanted=True)
            self._ended = []
            for branch in self._branches:
                branch.stop(at_once=at_once)


def _check_arguments(command: list[str]) -> None:
    """Refuse arguments that no program can be started with.

    Raises:
        TaskFailed: An argument is too long, or cannot be encoded.
    """
    try:
        longest = max(len(argument.encode()) for argument in command)
    except UnicodeEncodeError:
        raise TaskFailed(
            "an argument of the command contains an unpaired surrogate, which cannot be encoded", is_retryable=False
        ) from None
    if longest >= MAX_ARGUMENT_BYTES:
        raise TaskFailed(
            f"the inputs make a command-line argument of {longest} bytes, but the system allows {MAX_ARGUMENT_BYTES}; "
            "pass large values as artifacts",
            is_retryable=False,
        )
