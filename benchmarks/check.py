"""Measure how long `accelerators check` takes: start-up against importing the SDK, and cost per byte of a file.

    python -m benchmarks.check [FILE]

Start-up is compared with `from google.cloud import aiplatform_v1` in alternating runs. A check with the types of the
API needs at least this import; these types know the names of the fields, but no machines. The cost per byte is measured
for compiled pipelines of 0.1 to 2 MB; it stays level if the time grows linearly.
"""

import argparse
import copy
import functools
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.measuring import median, parse, took
from localvertex._base.userinput.reading import read
from localvertex.machines import check_pipeline

_ROOT = Path(__file__).parents[1]
_BUILT = _ROOT / "build" / "image_training.json"
_DEFAULT = _BUILT if _BUILT.exists() else _ROOT / "packages/localvertex/tests/data/machines/pipelines/planned.json"
_ALTERNATIVE = "from google.cloud import aiplatform_v1"


def _start_up(path: Path, repeat: int) -> None:
    """Print the time of a whole check and of importing the SDK."""
    check = [sys.executable, "-m", "localvertex", "machines", "check", str(path)]
    sdk = [sys.executable, "-W", "ignore", "-c", _ALTERNATIVE]
    run = functools.partial(subprocess.run, cwd=_ROOT, capture_output=True, check=False)
    # Alternating runs see the same load of the machine; the first of each warms .pyc files and the disk cache.
    pairs = [(took(run, check), took(run, sdk)) for _ in range(repeat + 1)][1:]
    of_check, of_sdk = (median(column) for column in zip(*pairs, strict=True))
    print(f"{of_check}  accelerators check {path.name}, {path.stat().st_size / 1000:.0f} kB, median of {repeat}")
    print(f"{of_sdk}  {_ALTERNATIVE}")
    print(f"ratio {of_check.seconds / of_sdk.seconds:.3f}")


def _grown(spec: dict[str, Any], size_bytes: int) -> str:
    """Return the pipeline as JSON of about this size, with copies of its tasks.

    The names of the copies cannot clash with kfp's own, which end with numbers.
    """
    large = copy.deepcopy(spec)
    tasks = large["root"]["dag"]["tasks"]
    one = {name: copy.deepcopy(task) for name, task in tasks.items()}
    executors = large["deploymentSpec"]["executors"]
    containers = dict(executors)
    copies = max(1, round(size_bytes / len(json.dumps(spec, indent=2))))
    for number in range(copies):
        for name, task in one.items():
            tasks[f"{name}-copy-{number}"] = task
        for name, container in containers.items():
            executors[f"{name}-copy-{number}"] = container
        for name, component in spec["components"].items():
            large["components"][f"{name}-copy-{number}"] = component
    return json.dumps(large, indent=2)


def _check(path: Path) -> None:
    check_pipeline(read(path))


def _growth(path: Path, sizes_mb: list[float], repeat: int) -> None:
    """Print the cost per byte at several sizes."""
    spec = read(path)
    print("\nsize    read + check                        per byte")
    with tempfile.TemporaryDirectory() as folder:
        for size_mb in sizes_mb:
            target = Path(folder) / "large.json"
            target.write_text(_grown(spec, int(size_mb * 1e6)), "utf-8")
            best = min(took(_check, target) for _ in range(repeat))
            size = target.stat().st_size
            print(f"{size / 1e6:5.2f} MB {best}   {best.seconds / size * 1e9:7.1f} ns")


def main() -> None:
    """Run both measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", nargs="?", type=Path, default=_DEFAULT, help="compiled pipeline (JSON)")
    parser.add_argument("--repeat", type=int, default=5, help="number of runs (default: 5)")
    parser.add_argument("--megabytes", type=float, nargs="+", default=[0.1, 0.25, 0.5, 1.0, 2.0], help="sizes of files")
    options = parse(parser, repeat=1, megabytes=[0.1])
    _start_up(options.file.resolve(), options.repeat)
    _growth(options.file.resolve(), options.megabytes, options.repeat)


if __name__ == "__main__":
    main()
