"""The trial of XLA in a child process, so that an abort of its compiler costs the trial and not the run.

It is for GPUs, whose compiler may end the process, and is over before this process takes them: a child gets no memory
of a device that TensorFlow has initialised here.
"""

import dataclasses
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any

from exact_resume.workers.deadline import POLL_SECONDS, TimedOut
from exact_resume.workers.signals import StopRequest

_LIMIT_SECONDS = 300.0
"""Longest trial; compiling a large network takes one or two minutes."""
_MIN_STEPS = 100
"""A shorter run would not gain what the child's start costs."""
_COMMAND = (sys.executable, "-m", "trainer.loop.xla.child")
_CAUSE = re.compile(rb"LLVM ERROR|Check failed|[Ff]atal|FATAL")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """Result of a trial on this machine."""

    without: float = 0.0
    """Seconds per step without XLA."""
    compiled: float = math.inf
    """Seconds per step with XLA; infinite if it cannot be used."""
    reason: str = ""
    """Why it cannot be used, as the beginning of a sentence."""


def on_gpus(request: Mapping[str, Any], *, stop: StopRequest) -> Outcome:
    """Try XLA for a run on this machine's GPUs, unless it is known to fail or not worthwhile.

    Args:
        request: As for `run`.
        stop: A stop request ends the trial.

    Raises:
        TimedOut: A stop was requested.
    """
    import tensorflow as tf

    # None of these calls initialises a device.
    details = map(tf.config.experimental.get_device_details, tf.config.list_physical_devices("GPU"))
    capabilities = [found["compute_capability"] for found in details if "compute_capability" in found]
    if reason := unknown_gpu(capabilities, tf.sysconfig.get_build_info().get("cuda_compute_capabilities", [])):
        return Outcome(reason=reason)
    if request["num_steps"] < _MIN_STEPS:
        return Outcome(reason=f"XLA is not tried in runs of less than {_MIN_STEPS} steps")
    return run(request, stop=stop)


def unknown_gpu(capabilities: Iterable[tuple[int, int]], known: Sequence[str]) -> str:
    """Return why XLA is not tried on GPUs of these compute capabilities; empty if it can be tried.

    Args:
        capabilities: (major, minor) of each GPU.
        known: Targets of this TensorFlow, for example sm_89, from `tf.sysconfig.get_build_info`; may be empty.
    """
    found = [re.fullmatch(r"(?:sm|compute)_(\d+)(\d)[a-z]?", name) for name in known]
    newest = max(((int(match[1]), int(match[2])) for match in found if match), default=(math.inf, 0))
    highest = max(capabilities, default=(0, 0))
    if highest <= newest:
        return ""
    return (
        f"XLA is not tried on GPUs of compute capability {highest[0]}.{highest[1]}, because this TensorFlow was built"
        f" for up to {newest[0]}.{newest[1]}"
    )


def run(
    request: Mapping[str, Any],
    *,
    stop: StopRequest,
    command: Sequence[str] = (),
    limit_seconds: float = _LIMIT_SECONDS,
) -> Outcome:
    """Time XLA in a child process, which has ended when this returns or raises.

    Args:
        request: The arguments of `trainer.loop.xla.child.measure`.
        stop: A stop request ends the trial.
        command: Reads the request from its standard input, and prints the fields of an outcome in its last line; by
            default the real one.
        limit_seconds: Longest time.

    Raises:
        TimedOut: A stop was requested.
    """
    print(f"timing XLA in a process of its own, for at most {limit_seconds:g} s", flush=True)
    # Files instead of pipes, which the compiler's own children could keep open.
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        stdin.write(json.dumps({"parent": os.getpid(), "limit_seconds": limit_seconds, **request}).encode())
        stdin.seek(0)
        with subprocess.Popen(command or _COMMAND, stdin=stdin, stdout=stdout, stderr=stderr) as child:
            try:
                is_over = _wait(child, stop, limit_seconds)
            finally:
                child.kill()
        if is_over:
            return Outcome(reason=f"XLA was not ready after {limit_seconds:g} s in its trial")
        return _outcome(child.returncode, _lines(stdout), _lines(stderr))


def _wait(child: "subprocess.Popen[bytes]", stop: StopRequest, limit_seconds: float) -> bool:
    """Wait for the child; return whether its time is over."""
    deadline = time.monotonic() + limit_seconds
    while child.poll() is None:
        if stop.is_set:
            print(f"{stop.signal_name}: stopped during the trial of XLA; there is nothing to save", flush=True)
            raise TimedOut(stop.exit_code)
        if time.monotonic() > deadline:
            return True
        time.sleep(POLL_SECONDS)
    return False


def _outcome(code: int, printed: Sequence[bytes], errors: Sequence[bytes]) -> Outcome:
    if code == 0 and printed:
        try:
            return Outcome(**json.loads(printed[-1]))
        except (ValueError, TypeError):
            errors = printed
    ended = f"with {signal.Signals(-code).name}" if -code in set(signal.Signals) else f"with exit code {code}"
    # The compiler's own words, which a list of stack frames may follow.
    cause = next((line for line in errors if _CAUSE.search(line)), errors[-1] if errors else b"no message")
    return Outcome(reason=f"the trial of XLA ended {ended} ({' '.join(cause.decode(errors='replace').split())[:200]})")


def _lines(file: IO[bytes]) -> list[bytes]:
    file.seek(0)
    return [line for line in file.read().splitlines() if line.strip()]
