"""The guard: a process that starts the wrapped command and ends all of its processes, even if the wrapper is killed.

It is forked before the wrapper has threads. A socket joins the two: the wrapper sends the start with the descriptors
that the command gets, then numbers of signals. The guard answers with the command's return code. A wrapper that ends,
in any way, closes the socket, and the guard kills the command: its successor may start a command in the same folder.
"""

import contextlib
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence

from exact_resume.files import linux

_START = b"start"
_OUTPUTS = (1, 2)
_MAX_FDS = 3
_DEFAULTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD)
"""Signals that the command finds with their default handling."""
_KILL_SECONDS = 30.0
"""How long to kill processes that do not end, because the kernel waits for a disk."""
_KILLED = -signal.SIGKILL


class Guard:
    """The guard of one command, as the wrapper sees it."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Fork the guard; call this before any thread is started.

        Args:
            command: Program, looked up in PATH, and its arguments.
            environment: All of its environment variables.
        """
        # Of a shell that has replaced itself by the wrapper.
        self._others = linux.descendants(os.getpid())
        linux.adopt_orphans()
        self._channel, other_end = socket.socketpair()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                self._channel.close()
                _guard(other_end, command, environment)
            finally:
                os._exit(0)
        other_end.close()

    def start(self, lock: int, outputs: Sequence[int]) -> None:
        """Start the command.

        Args:
            lock: Descriptor of a locked file, which stays locked until the last process has ended.
            outputs: Descriptors for the command's stdout and stderr; empty: it has those of the wrapper.
        """
        with contextlib.suppress(OSError):  # `wait` returns its end
            socket.send_fds(self._channel, [_START], [lock, *outputs])

    def send(self, number: int) -> None:
        """Send a signal to the command only, as a container runtime does, and not to its other processes."""
        with contextlib.suppress(OSError):  # it has ended
            self._channel.send(bytes([number]))

    def wait(self, seconds: float) -> int | None:
        """Return the command's code, -N after signal N, when all its processes have ended; None: it still runs."""
        if not select.select([self._channel], [], [], seconds)[0]:
            return None
        answer = self._channel.recv(16)
        self.close()
        return int(answer) if answer else _KILLED

    def close(self) -> None:
        """Kill the command and all of its processes, if they still run; return when they have ended."""
        self._channel.close()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._pid, 0)
        # Only if the guard was killed: its orphans are then the wrapper's.
        _kill_all(spared=self._others)


def _guard(channel: socket.socket, command: Sequence[str], environment: Mapping[str, str]) -> None:
    os.setsid()
    linux.adopt_orphans()
    wakeup, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    message, descriptors, _, _ = socket.recv_fds(channel, len(_START), _MAX_FDS)
    if not message:
        return
    child = _fork(command, environment, descriptors[1:])
    for descriptor in descriptors[1:]:
        os.close(descriptor)
    code = None
    try:
        while code is None:
            ready, _, _ = select.select([channel.fileno(), wakeup], [], [])
            if wakeup in ready:
                os.read(wakeup, 4096)
                code = _reap(child)
            if channel.fileno() in ready and code is None:
                if not (numbers := channel.recv(64)):
                    break
                for each in numbers:
                    os.kill(child, each)
    finally:
        _kill_all(group=child)
    if code is not None:
        channel.send(str(code).encode())


def _fork(command: Sequence[str], environment: Mapping[str, str], outputs: Sequence[int]) -> int:
    """Start the command in a session of its own; return its process id."""
    guard = os.getpid()
    # A signal that arrives from now on reaches the command, however late its process runs for the first time.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _DEFAULTS)
    if child := os.fork():
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return child
    try:
        os.setsid()
        linux.end_with_parent()
        if os.getppid() != guard:  # it ended before the line above
            os._exit(1)
        signal.set_wakeup_fd(-1)
        for number in _DEFAULTS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for target, descriptor in zip(_OUTPUTS, outputs, strict=False):
            os.dup2(descriptor, target)
        os.execvpe(command[0], list(command), environment)  # noqa: S606 - the command is the user's own, as a list
    except OSError as error:
        print(f"error: cannot run {command[0]!r}: {error.strerror}", file=sys.stderr, flush=True)
    finally:
        os._exit(127)


def _reap(child: int) -> int | None:
    """Reap what has ended; return the command's code if it is among them."""
    code = None
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            if found[0] == child:
                code = os.waitstatus_to_exitcode(found[1])
    return code


def _kill_all(*, group: int = 0, spared: Sequence[int] = ()) -> None:
    """Kill all descendants of this process but the spared; elsewhere than on Linux, those in a process group."""
    deadline = time.monotonic() + _KILL_SECONDS
    while time.monotonic() < deadline:
        kept = {below for pid in spared for below in (pid, *linux.descendants(pid))}
        remaining = [pid for pid in linux.descendants(os.getpid()) if pid not in kept]
        for pid in remaining:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if group and not linux.is_used():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
                remaining = [group]
        _reap(group)
        if not remaining:
            return
        time.sleep(0.01)
