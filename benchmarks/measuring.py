"""Shared by every benchmark: `--smoke`, a first line on the machine, and processor time beside wall time."""

import argparse
import os
import platform
import re
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple


class Took(NamedTuple):
    """The cost of a call."""

    seconds: float
    cpu_seconds: float
    """Processor time of this process and of its children that have ended."""

    def __str__(self) -> str:
        """Return both figures for a line of a table."""
        return f"{self.seconds:8.3f} s (processor {self.cpu_seconds:8.3f} s)"


class Clock:
    """Measures from when it is made."""

    def __init__(self) -> None:
        self._start = self._now()

    def took(self) -> Took:
        """Return the cost of everything since then."""
        return Took(*(now - then for now, then in zip(self._now(), self._start, strict=True)))

    def _now(self) -> tuple[float, float]:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.perf_counter(), time.process_time() + children.ru_utime + children.ru_stime


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
    processors = Path("/proc/cpuinfo")
    model = re.search(r"model name\s*: (.*)", processors.read_text()) if processors.exists() else None
    load = " ".join(f"{each:.1f}" for each in os.getloadavg())
    print(
        f"{model[1] if model else platform.machine()}, {os.cpu_count()} cores, {platform.system()}, Python"
        f" {platform.python_version()}; load average {load}",
        flush=True,
    )
    return options
