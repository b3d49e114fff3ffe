"""Run one command; end it and everything it started when the lifeline to the parent closes.

Started as `python -I -S supervisor.py LIFELINE[,HELD] GRACE_SECONDS[,SKIPPED] N CLEAN_UP... COMMAND...`, where the N
words of CLEAN_UP are a command that runs after COMMAND, however that ended; N may be 0. SKIPPED process ids are not
used. Each byte that arrives on the file descriptor LIFELINE is the number of a signal for the command's process group.
0 and end of file mean stop: SIGTERM first, SIGKILL after the grace time. A parent that dies, in any way, closes the
lifeline too, so no process outlives it. The file descriptor HELD is only kept open until the end.
Exits with the command's code, or 128 + signal as a container does. Before that it writes `LEFT,BYTES` to LIFELINE: how
many processes a command that was not killed has left, and the most memory that all its processes had together.
Standard library and linux.py only.
"""

import os
import select
import sys
import time

TYPE_CHECKING = False
"""A copy of the constant in `typing`, which takes longer to import than this whole program."""

if TYPE_CHECKING:
    import signal

    from localvertex._base import linux
else:
    # Importing `signal`, whose names are enumerations, takes as long as the start of the interpreter.
    import _signal as signal
    from importlib.machinery import SourceFileLoader

    # By its path, and without an entry in `sys.modules` that a step would find.
    linux = type(os)("linux")
    _FILE = os.path.abspath(f"{__file__}/../../_base/linux.py")
    SourceFileLoader("linux", _FILE).exec_module(linux)

_STOP = b"\0"

_MAX_CLEAN_UP_SECONDS = 30.0

_POLL_SECONDS = 0.1
"""How often a stop looks for remaining processes; only Linux reports the end of other processes' children."""

_SAMPLE_SECONDS, _SAMPLE_FACTOR = 0.5, 50
"""Time between two measurements of the memory of all processes, which take at most 1/50 of the time."""

_SETTLE_SECONDS = 0.1
"""Time in which a command's other processes, such as resource trackers, may end by themselves."""

_MIN_STACK_BYTES = 32_768
"""The smallest that Python allows."""

_DEFAULTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD)
"""Signals that the command finds with their default handling."""


def fork_command(lifeline: int) -> int:
    """Fork the process of the command in its own process group; return its process id, and 0 in that process.

    A signal that arrives from now on reaches the command, however late its process runs for the first time.
    """
    # Until the process has default handling, it would ignore the signals that this one ignores.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _DEFAULTS)
    child = os.fork()
    if child:
        _make_group(child)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return child
    os.setpgid(0, 0)
    linux.end_with_parent()
    os.close(lifeline)
    signal.set_wakeup_fd(-1)
    for number in _DEFAULTS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return 0


def _make_group(child: int) -> None:
    """Give the command its process group, unless it has already made it."""
    try:
        os.setpgid(child, child)
    except OSError:
        pass  # The command executes its program, or has ended.


def execute(command: list[str]) -> None:
    """Replace this process by the command."""
    try:
        os.execvp(command[0], command)  # noqa: S606 - the command is the user's own, as a list
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    os._exit(127)


def _are_left(group: int) -> bool:
    """Return whether the command has left processes: in its process group and, on Linux, outside of it."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return bool(linux.descendants(os.getpid()))
    return True


def _signal_all(group: int, number: int) -> None:
    """Send a signal to the command's process group and to every descendant outside of it."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass
    for pid in linux.descendants(os.getpid()):
        try:
            if os.getpgid(pid) != group:
                os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            pass


def _reap(child: int) -> int | None:
    """Reap the processes that have ended; return the exit code of the command if it is one of them."""
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


def _received(lifeline: int) -> bytes:
    """Return the bytes that have arrived on the lifeline; empty when its other end is closed."""
    try:
        return os.read(lifeline, 64)
    except ConnectionResetError:
        return b""


def _supervise(child: int, lifeline: int, grace_seconds: float, wakeup: int) -> tuple[int, int]:
    """Wait for the command, forward signals, stop it when the lifeline closes; return its exit code and peak memory.

    A stop that ends a shell at once leaves the program that the shell started its grace time.
    """
    waiting = [lifeline, wakeup]
    kill_at: float | None = None
    code: int | None = None
    peak_bytes, look_at = 0, time.monotonic() + _SAMPLE_SECONDS
    while True:
        until = look_at if kill_at is None else min(look_at, kill_at, time.monotonic() + _POLL_SECONDS)
        ready, _, _ = select.select(waiting, [], [], max(0.0, until - time.monotonic()))
        if not ready and time.monotonic() >= look_at:
            start = time.process_time()
            peak_bytes = max(peak_bytes, linux.tree_bytes(os.getpid()))
            # Its own time: on a busy machine a look takes longer, and costs no more.
            look_at = time.monotonic() + max(_SAMPLE_SECONDS, _SAMPLE_FACTOR * (time.process_time() - start))
        if wakeup in ready:
            os.read(wakeup, 4096)
        ended = _reap(child)
        code = code if ended is None else ended
        is_stopped = kill_at is not None and code == 128 + signal.SIGTERM
        if code is not None and not (is_stopped and _are_left(child)):
            return code, peak_bytes
        if lifeline in ready:
            numbers = _received(lifeline)
            for number in numbers.replace(_STOP, b""):
                _signal_all(child, number)
            waiting = waiting if numbers else [wakeup]
            if kill_at is None and (not numbers or _STOP in numbers):
                kill_at = time.monotonic() + grace_seconds
                _signal_all(child, signal.SIGTERM)
                # A stopped process does not see the SIGTERM before it continues.
                _signal_all(child, signal.SIGCONT)
        if kill_at is not None and time.monotonic() >= kill_at:
            _signal_all(child, signal.SIGKILL)
            if code is not None and not linux.is_used():
                # Processes that are not reaped are still members of the group.
                return code, peak_bytes
            kill_at = time.monotonic() + 1.0


def prepare() -> int:
    """Make this process a supervisor; return the file descriptor that becomes readable when a child has ended."""
    linux.adopt_orphans()
    wakeup, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return wakeup


def _num_left() -> int:
    """Return how many processes the command has left, on Linux."""
    deadline = time.monotonic() + _SETTLE_SECONDS
    while (left := linux.descendants(os.getpid())) and time.monotonic() < deadline:
        time.sleep(0.01)
        _reap(0)
    return len(left)


def clean_up(child: int) -> None:
    """End the command's background processes, which would end with its container."""
    for _ in range(100):
        if not _are_left(child):
            break
        _signal_all(child, signal.SIGKILL)
        _reap(child)
        time.sleep(0.01)


def _run_to_end(command: list[str]) -> None:
    """Run the command that ends what a container engine keeps running; give up when it takes too long."""
    child = os.fork()
    if child == 0:
        silence = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(silence, fd)
        execute(command)
    deadline = time.monotonic() + _MAX_CLEAN_UP_SECONDS
    while _reap(child) is None:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.01)


def supervise_to_end(
    child: int, lifeline: int, grace_seconds: float, wakeup: int, clean_up_command: "list[str] | None" = None
) -> None:
    """Supervise the command, report on the lifeline what it left, its peak memory and its exit code, and exit."""
    code, peak_bytes = _supervise(child, lifeline, grace_seconds, wakeup)
    # With a machine that is lost, all processes are.
    left = 0 if code == 128 + signal.SIGKILL else _num_left()
    try:
        os.write(lifeline, f"{left},{max(peak_bytes, linux.largest_bytes())},{code}".encode())
    except OSError:
        pass  # The parent has ended.
    if clean_up_command:
        _run_to_end(clean_up_command)
    clean_up(child)
    os._exit(code)


def skip_process_ids(number: int) -> None:
    """Let threads use up ids: all process tables of masks begin with 1, and programs name common files by their id."""
    if number:
        import _thread

        # Of memory for a stack, more takes longer.
        _thread.stack_size(_MIN_STACK_BYTES)
        for _ in range(number):
            _thread.start_new_thread(int, ())
        _thread.stack_size(0)
        while _thread._count():  # noqa: SLF001 - `threading` takes longer to import
            time.sleep(0.0001)


def main() -> None:
    """Run the command of the command line."""
    kept, num_words = [int(fd) for fd in sys.argv[1].split(",")], int(sys.argv[3])
    grace_seconds, skipped = [float(each) for each in f"{sys.argv[2]},0".split(",")][:2]
    skip_process_ids(int(skipped))
    clean_up_command, command = sys.argv[4 : 4 + num_words], sys.argv[4 + num_words :]
    # The command inherits none of them: exec closes what is not inheritable.
    for fd in kept:
        os.set_inheritable(fd, False)
    wakeup = prepare()
    child = fork_command(kept[0])
    if child == 0:
        execute(command)
    supervise_to_end(child, kept[0], grace_seconds, wakeup, clean_up_command)


if __name__ == "__main__":
    main()
