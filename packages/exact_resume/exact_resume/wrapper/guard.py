"""The guard: a process that runs the wrapped command and ends all of its processes, even if the wrapper is killed.

It passes the wrapper's signals on and exits with the command's code. A guard whose wrapper has ended kills the command,
because a successor may start one in the same folder. A wrapper whose guard was killed inherits its processes and kills
them.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

from exact_resume.files import linux

_POLL_SECONDS = 0.05
_KILL_PAUSE_SECONDS = 0.01
_MAX_KILLS = 3000
"""A process does not end while the kernel waits for a disk."""


def start(command: Sequence[str], environment: Mapping[str, str], output: int | None) -> "subprocess.Popen[bytes]":
    """Start a guard, which starts the command; signals that it gets reach the command only.

    Args:
        command: Program, looked up in PATH, and its arguments.
        environment: All of its environment variables.
        output: PIPE, or None for the output of this process.
    """
    linux.adopt_orphans()
    return subprocess.Popen(
        [sys.executable, "-m", __name__, str(os.getpid()), *command],
        bufsize=0,
        stdout=output,
        stderr=output,
        env=environment,
        start_new_session=True,
    )


def end(guard: "subprocess.Popen[bytes]") -> int:
    """Kill the command and all of its processes, if they still run; return its exit code, 128+N after signal N."""
    guard.kill()
    if (code := guard.wait()) >= 0:
        return code
    _kill_descendants()
    return 128 - code


def _main(wrapper: int, command: Sequence[str]) -> int:
    """Run the command until it or the wrapper ends, and return its exit code."""
    linux.adopt_orphans()
    signals: list[int] = []
    # Before the command starts, which may have much to save when the first signal arrives.
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda number, _: signals.append(number))
    try:
        child = subprocess.Popen(command, start_new_session=True, preexec_fn=linux.end_with_parent)
    except OSError as error:
        print(f"error: cannot run {command[0]!r}: {error.strerror}", file=sys.stderr)
        return 127
    while child.poll() is None and os.getppid() == wrapper:
        while signals:
            child.send_signal(signals.pop(0))
        time.sleep(_POLL_SECONDS)
    with contextlib.suppress(OSError):
        # Descendants are known on Linux only.
        os.killpg(child.pid, signal.SIGKILL)
    _kill_descendants()
    code = child.returncode or 0
    return code if code >= 0 else 128 - code


def _kill_descendants() -> None:
    for _ in range(_MAX_KILLS):
        if not (remaining := linux.descendants(os.getpid())):
            return
        for pid in remaining:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, os.WNOHANG)
        time.sleep(_KILL_PAUSE_SECONDS)


if __name__ == "__main__":
    sys.exit(_main(int(sys.argv[1]), sys.argv[2:]))
