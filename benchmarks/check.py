"""How long `accelerators check` takes: against importing the SDK that could check nothing, and per byte of a spec.

    python benchmarks/check.py [FILE]

Start-up is compared with `from google.cloud import aiplatform_v1` in the same run, side by side: that is what a check
of the payload by the API's own types needs at least (it knows field names and no machines). Growth is the cost per
byte of a compiled pipeline of 0.1 to 2 MB; linear growth keeps it level.
"""

import argparse
import copy
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from accelerators import check_pipeline
from userinput.reading import read

ROOT = Path(__file__).parents[1]
BUILT = ROOT / "build" / "image_training.json"
DEFAULT = BUILT if BUILT.exists() else ROOT / "tests" / "data" / "accelerators" / "pipelines" / "planned.json"
ALTERNATIVE = "from google.cloud import aiplatform_v1"
SIZES_MB = (0.1, 0.25, 0.5, 1.0, 2.0)


def seconds_of(command: list[str], repeat: int) -> list[float]:
    """Return the wall seconds of so many runs of a command."""
    taken = []
    for _ in range(repeat):
        start = time.perf_counter()
        subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
        taken.append(time.perf_counter() - start)
    return taken


def start_up(path: Path, repeat: int) -> None:
    """Print the time of a whole check beside that of importing the SDK."""
    check = [sys.executable, "-m", "accelerators", "check", str(path)]
    sdk = [sys.executable, "-W", "ignore", "-c", ALTERNATIVE]
    seconds_of(check, 1), seconds_of(sdk, 1)  # both with warm .pyc files and disk cache
    ours, theirs = [], []
    for _ in range(repeat):  # in turns, so that both see the same load
        ours += seconds_of(check, 1)
        theirs += seconds_of(sdk, 1)
    mine, other = statistics.median(ours), statistics.median(theirs)
    print(f"{mine:6.3f} s  accelerators check {path.name}, {path.stat().st_size / 1000:.0f} kB {_spread(ours)}")
    print(f"{other:6.3f} s  {ALTERNATIVE} {_spread(theirs)}")
    print(f"ratio {mine / other:.3f}")


def _spread(seconds: list[float]) -> str:
    return f"(median of {len(seconds)}, {min(seconds):.3f} to {max(seconds):.3f})"


def grown(spec: dict[str, Any], size_bytes: int) -> str:
    """Return the pipeline with so many copies of its tasks that it is about so large as JSON."""
    large = copy.deepcopy(spec)
    tasks = large["root"]["dag"]["tasks"]
    one = {name: copy.deepcopy(task) for name, task in tasks.items()}
    executors = large["deploymentSpec"]["executors"]
    containers = dict(executors)
    copies = max(1, round(size_bytes / len(json.dumps(spec, indent=2))))
    for number in range(copies):
        for name, task in one.items():
            tasks[f"{name}-{number}"] = task
        for name, container in containers.items():
            executors[f"{name}-{number}"] = container
        for name, component in spec["components"].items():
            large["components"][f"{name}-{number}"] = component
    return json.dumps(large, indent=2)


def growth(path: Path, repeat: int) -> None:
    """Print the cost per byte at several sizes."""
    spec = read(path)
    print("\nsize      read + check   per byte")
    with tempfile.TemporaryDirectory() as folder:
        for size_mb in SIZES_MB:
            target = Path(folder) / "large.json"
            target.write_text(grown(spec, int(size_mb * 1e6)), "utf-8")
            taken = []
            for _ in range(repeat):
                start = time.perf_counter()
                check_pipeline(read(target))
                taken.append(time.perf_counter() - start)
            size = target.stat().st_size
            best = min(taken)
            print(f"{size / 1e6:5.2f} MB   {best:8.3f} s    {best / size * 1e9:7.1f} ns")


def main() -> None:
    """Run both measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=DEFAULT, help="compiled pipeline (JSON)")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each (default 5)")
    options = parser.parse_args()
    start_up(options.file.resolve(), options.repeat)
    growth(options.file.resolve(), options.repeat)


if __name__ == "__main__":
    main()
