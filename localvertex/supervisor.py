"""Runs one command; ends it and everything it started when the pipe from its parent closes.

Started as `python -I -S supervisor.py LIFELINE GRACE_SECONDS COMMAND...`. Each byte that arrives on the file descriptor
LIFELINE is the number of a signal to pass on to the command's process group. End of file means: stop, SIGTERM first,
SIGKILL after the grace time. A parent that dies, in whatever way, closes the pipe too, so nothing outlives it.
Exits with the command's code, or 128 + signal as a container does. Standard library only, no import of this package.
"""

import ctypes
import os
import select
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def prctl(option: int, value: int) -> None:
    """Linux only; elsewhere the process group alone is ended."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def start(command: list[str], lifeline: int) -> int:
    """Starts the command in a process group of its own and returns its process id."""
    child = os.fork()
    if child:
        return child
    os.setpgid(0, 0)
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.close(lifeline)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606 - the command is the user's own, as a list
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    os._exit(127)


def descendants(parent: int) -> list[int]:
    """Process ids of all that lives below `parent`, those in other process groups included."""
    found: list[int] = []
    try:
        with open(f"/proc/{parent}/task/{parent}/children") as file:
            children = [int(pid) for pid in file.read().split()]
    except OSError:
        return found
    for child in children:
        found += [child, *descendants(child)]
    return found


def signal_all(group: int, number: int) -> None:
    """Sends a signal to the command's process group and to every descendant outside of it."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass
    for pid in descendants(os.getpid()):
        try:
            if os.getpgid(pid) != group:
                os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def reap(child: int) -> int | None:
    """Collects what has ended; the command's exit code when it is among it."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == child:
            raw = os.waitstatus_to_exitcode(status)
            code = raw if raw >= 0 else 128 - raw


def supervise(child: int, lifeline: int, grace_seconds: float, wakeup: int) -> int:
    """Waits for the command, passes signals on, stops it when the lifeline ends; returns its exit code."""
    waiting, kill_at = [lifeline, wakeup], None
    while True:
        timeout = None if kill_at is None else max(0.0, kill_at - time.monotonic())
        ready, _, _ = select.select(waiting, [], [], timeout)
        if wakeup in ready:
            os.read(wakeup, 4096)
        code = reap(child)
        if code is not None:
            return code
        if lifeline in ready:
            numbers = os.read(lifeline, 64)
            for number in numbers:
                signal_all(child, number)
            if not numbers:
                waiting, kill_at = [wakeup], time.monotonic() + grace_seconds
                signal_all(child, signal.SIGTERM)
                # A stopped process would not see the SIGTERM before it goes on.
                signal_all(child, signal.SIGCONT)
        if kill_at is not None and time.monotonic() >= kill_at:
            signal_all(child, signal.SIGKILL)
            kill_at = time.monotonic() + 1.0


def main() -> None:
    """Runs the command of the command line."""
    lifeline, grace_seconds, command = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    wakeup, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    child = start(command, lifeline)
    code = supervise(child, lifeline, grace_seconds, wakeup)
    # What the command left in the background ends with it, as it would with its container.
    for _ in range(100):
        if not descendants(os.getpid()):
            break
        signal_all(child, signal.SIGKILL)
        reap(child)
        time.sleep(0.01)
    os._exit(code)


if __name__ == "__main__":
    main()
