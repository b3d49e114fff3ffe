"""Measures the time from SIGKILL of a replica to the start of its replacement, compared with a bare loop.

Run it as `python -m benchmarks.restart`. A job of two or more replicas runs; its worker records the time and kills
itself, the next one records when its first line runs. The baseline is the same program, restarted by a bare loop.
"""

import argparse
import functools
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from benchmarks.measuring import Clock, Took, median, parse
from localvertex import jobs
from localvertex.processes.processes import Processes

_DIE = """
import os, pathlib, signal, sys, time
file = pathlib.Path(sys.argv[1])
before = file.read_text() if file.exists() else ""
now = time.time()
file.write_text(before + f"start {now}\\nkill {time.time()}\\n")
os.kill(os.getpid(), signal.SIGKILL)
"""

_WAIT = "import time; time.sleep(600)"


def _pool(code: str, *arguments: str, num_replicas: int = 1) -> dict[str, object]:
    """Build a worker pool."""
    container = {"image_uri": "gcr.io/x/y:1", "command": ["python", "-c", code, *arguments]}
    return {
        "machine_spec": {"machine_type": "n1-standard-4"},
        "replica_count": num_replicas,
        "container_spec": container,
    }


def _gaps(file: Path) -> list[float]:
    """Return the seconds from each kill to the next start."""
    lines = [line.split() for line in file.read_text().splitlines()]
    times = [(word, float(seconds)) for word, seconds in lines]
    return [start - kill for (before, kill), (after, start) in pairwise(times) if (before, after) == ("kill", "start")]


def _localvertex_gaps(folder: Path, num_replicas: int = 2) -> list[float]:
    """Measure the 23 gaps of a job whose worker dies until its restarts are used up."""
    file = folder / "times"
    pools = [_pool(_WAIT), _pool(_DIE, str(file))]
    pools += [_pool(_WAIT, num_replicas=num_replicas - len(pools))] * (num_replicas > len(pools))
    message = {"job_spec": {"worker_pool_specs": pools}}
    job = jobs.read_job(message, region="us-central1", warn=lambda text: None)
    workspace = jobs.Workspace(folder=folder / "job", private_dir=folder)
    jobs.run_job(job, workspace=workspace, processes=Processes(grace_seconds=1))
    return _gaps(file)


def _bare_gaps(folder: Path) -> list[float]:
    """Measure the gaps of the same program in a loop."""
    file = folder / "bare"
    for _ in range(24):
        subprocess.run([sys.executable, "-c", _DIE, str(file)])
    return _gaps(file)


def main() -> None:
    """Print the median and the longest gap of each, and what all their restarts cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--replicas", type=int, default=2, help="replicas of the job, of which one is killed")
    options = parse(parser, repeats=1)
    ways: dict[str, Callable[[Path], list[float]]] = {
        "bare loop": _bare_gaps,
        "localvertex": functools.partial(_localvertex_gaps, num_replicas=options.replicas),
    }
    gaps: dict[str, list[float]] = {name: [] for name in ways}
    costs: dict[str, list[Took]] = {name: [] for name in ways}
    for _ in range(options.repeats):
        with tempfile.TemporaryDirectory() as folder:
            for name, measure in ways.items():
                clock = Clock()
                gaps[name] += measure(Path(folder))
                costs[name].append(clock.took())
    print("SIGKILL of a replica to the first line of its replacement")
    for name, seconds in gaps.items():
        print(
            f"{name:12} median {statistics.median(seconds):6.3f} s, longest {max(seconds):6.3f} s of {len(seconds)};"
            f" all of a job{median(costs[name])}"
        )


if __name__ == "__main__":
    main()
