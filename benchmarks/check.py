"""Measure how long `accelerators check` takes: start-up against importing the SDK, and cost per byte of a file.

    python benchmarks/check.py [FILE]

Start-up is compared with `from google.cloud import aiplatform_v1` in alternating runs. A check with the types of the
API needs at least this import; these types know the names of the fields, but no machines. The cost per byte is measured
for compiled pipelines of 0.1 to 2 MB; it stays level if the time grows linearly.
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
from localvertex_base.userinput.reading import read

_ROOT = Path(__file__).parents[1]
_BUILT = _ROOT / "build" / "image_training.json"
_DEFAULT = _BUILT if _BUILT.exists() else _ROOT / "packages/localvertex/tests/data/accelerators/pipelines/planned.json"
_ALTERNATIVE = "from google.cloud import aiplatform_v1"
_SIZES_MB = (0.1, 0.25, 0.5, 1.0, 2.0)


def _seconds(command: list[str]) -> float:
    """Return the wall time of a command in seconds."""
    start = time.perf_counter()
    subprocess.run(command, cwd=_ROOT, capture_output=True, check=False)
    return time.perf_counter() - start


def _start_up(path: Path, repeat: int) -> None:
    """Print the time of a whole check and that of importing the SDK."""
    check = [sys.executable, "-m", "accelerators", "check", str(path)]
    sdk = [sys.executable, "-W", "ignore", "-c", _ALTERNATIVE]
    for command in (check, sdk):
        _seconds(command)  # warms .pyc files and the disk cache
    # Alternating runs see the same load of the machine.
    pairs = [(_seconds(check), _seconds(sdk)) for _ in range(repeat)]
    of_check, of_sdk = (list(seconds) for seconds in zip(*pairs, strict=True))
    median_check, median_sdk = statistics.median(of_check), statistics.median(of_sdk)
    size = path.stat().st_size / 1000
    print(f"{median_check:6.3f} s  accelerators check {path.name}, {size:.0f} kB {_spread(of_check)}")
    print(f"{median_sdk:6.3f} s  {_ALTERNATIVE} {_spread(of_sdk)}")
    print(f"ratio {median_check / median_sdk:.3f}")


def _spread(seconds: list[float]) -> str:
    return f"(median of {len(seconds)}, {min(seconds):.3f} to {max(seconds):.3f})"


def _grown(spec: dict[str, Any], size_bytes: int) -> str:
    """Return the pipeline as JSON of about this size, with copies of its tasks."""
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


def _growth(path: Path, repeat: int) -> None:
    """Print the cost per byte at several sizes."""
    spec = read(path)
    print("\nsize      read + check   per byte")
    with tempfile.TemporaryDirectory() as folder:
        for size_mb in _SIZES_MB:
            target = Path(folder) / "large.json"
            target.write_text(_grown(spec, int(size_mb * 1e6)), "utf-8")
            seconds = []
            for _ in range(repeat):
                start = time.perf_counter()
                check_pipeline(read(target))
                seconds.append(time.perf_counter() - start)
            size = target.stat().st_size
            print(f"{size / 1e6:5.2f} MB   {min(seconds):8.3f} s    {min(seconds) / size * 1e9:7.1f} ns")


def main() -> None:
    """Run both measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, default=_DEFAULT, help="compiled pipeline (JSON)")
    parser.add_argument("--repeat", type=int, default=5, help="number of runs (default: 5)")
    options = parser.parse_args()
    _start_up(options.file.resolve(), options.repeat)
    _growth(options.file.resolve(), options.repeat)


if __name__ == "__main__":
    main()
