"""Shared by every benchmark: `--smoke`, a first line on the machine, and processor time beside wall time."""

import argparse
import atexit
import contextlib
import functools
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple


class Took(NamedTuple):
    """The cost of a call."""

    seconds: float
    cpu_seconds: float
    """Processor time of this process and of all that it has started; without a control group, only of children."""

    def __str__(self) -> str:
        """Return both figures for a line of a table."""
        return f"{self.seconds:8.3f} s (processor {self.cpu_seconds:8.3f} s)"


_GROUPS = (("/sys/fs/cgroup/cpuacct", "cpuacct.usage", 1e-9), ("/sys/fs/cgroup", "cpu.stat", 1e-6))
"""Linux's control groups, versions 1 and 2: folder, file with a group's processor time, and its unit in seconds."""


@functools.cache
def _group() -> tuple[Path, float] | None:
    """Move this process to a control group of its own; return the file with its processor time, None without rights.

    bubblewrap does not wait for what it starts, so that the time of steps behind a mask is nobody's child time.
    """
    for parent, name, unit in _GROUPS:
        folder = Path(parent) / f"benchmark-{os.getpid()}"
        with contextlib.suppress(OSError):
            folder.mkdir()
            (folder / "cgroup.procs").write_text(str(os.getpid()))
            if (folder / name).exists():
                atexit.register(_leave, folder)
                return folder / name, unit
            _leave(folder)
    return None


def _leave(folder: Path) -> None:
    with contextlib.suppress(OSError):
        (folder.parent / "cgroup.procs").write_text(str(os.getpid()))
        folder.rmdir()


def _cpu_seconds() -> float:
    """Return the processor time of this process and of all that it has started, or that it has waited for."""
    if (group := _group()) is None:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time() + children.ru_utime + children.ru_stime
    file, unit = group
    return int(re.sub(r"\Ausage_usec ", "", file.read_text()).split()[0]) * unit


class Clock:
    """Measures from when it is made."""

    def __init__(self) -> None:
        self._start = self._now()

    def took(self) -> Took:
        """Return the cost of everything since then."""
        return Took(*(now - then for now, then in zip(self._now(), self._start, strict=True)))

    def _now(self) -> tuple[float, float]:
        return time.perf_counter(), _cpu_seconds()


def took(call: Callable[..., object], *arguments: Any) -> Took:
    """Call a function once and return its cost."""
    clock = Clock()
    call(*arguments)
    return clock.took()


def median(found: Iterable[Took]) -> Took:
    """Return the medians of both figures."""
    return Took(*map(statistics.median, zip(*found, strict=True)))


def parse(parser: argparse.ArgumentParser, **smoke: Any) -> argparse.Namespace:
    """Parse the arguments of a benchmark and print its machine.

    Args:
        parser: Without `--smoke`.
        **smoke: Defaults with `--smoke`, with which the benchmark finishes in seconds.
    """
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--smoke", action="store_true", help="only try the benchmark, with tiny sizes")
    if "--smoke" in sys.argv:
        parser.set_defaults(**smoke)
    options = parser.parse_args()
    print(f"{machine()}; load average {load()}", flush=True)
    return options


def machine() -> str:
    """Describe the processor, the system and Python."""
    processors = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", processors.read_text()) if processors.exists() else None
    return (
        f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores, {platform.system()}, Python"
        f" {platform.python_version()}"
    )


def load() -> str:
    """Return the load averages of 1, 5 and 15 minutes."""
    return " ".join(f"{each:.1f}" for each in os.getloadavg())


def num_gpus() -> int:
    """Return the number of GPUs that TensorFlow sees, from a separate process that frees their memory."""
    code = "import tensorflow as tf; print(len(tf.config.list_physical_devices('GPU')))"
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return int(done.stdout.split()[-1])
