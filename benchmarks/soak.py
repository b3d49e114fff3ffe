"""Kills `prepare` at random moments and starts it again, a given number of times.

    python -m benchmarks.soak --num-images 200000 --num-kills 30
    python -m benchmarks.soak release --num-kills 40  # kills a release instead, see soak_release.py
    python -m benchmarks.soak training --num-faults 100  # disturbs training jobs instead, see soak_training.py

Each dataset that comes out has the bytes of one that was made without a kill, report included. When a run finishes
before its kill, the next one begins with nothing. Prints what each attempt read, the peak memory, the disk's use and
what is left at the end; the exit code is 1 if bytes differ or anything is left.
"""

import argparse
import dataclasses
import filecmp
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import soak_release, soak_training
from tests.support import tiny_images

_IMAGE_SIZE = 8
_POLL_SECONDS = 0.005


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Attempt:
    """Result of one process."""

    is_killed: bool
    seconds: float
    cpu_seconds: float
    peak_mib: float
    num_read: int
    """Number of images that it read; 0 if it was killed."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Place:
    """Where attempts write: the dataset and its report, the pipeline root, and temporary files."""

    folder: Path
    source: Path

    def attempt(self, kill_after_seconds: float | None = None) -> _Attempt:
        """Run `prepare` to its end, or kill it after some time.

        Raises:
            SystemExit: It fails by itself.
        """
        for name in ("outputs", "root", "tmp"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        words = [sys.executable, "-m", "trainer.prepare", str(self.source), str(self.folder / "outputs" / "out")]
        words += [f"--image-size={_IMAGE_SIZE}", f"--pipeline-root={self.folder / 'root'}"]
        begin = time.monotonic()
        with tempfile.TemporaryFile("w+") as printed:
            environment = os.environ | {"TMPDIR": str(self.folder / "tmp")}
            process = subprocess.Popen(words, env=environment, stdout=printed, stderr=printed)
            while (found := os.wait4(process.pid, os.WNOHANG))[0] == 0:
                if kill_after_seconds is not None and time.monotonic() - begin >= kill_after_seconds:
                    process.send_signal(signal.SIGKILL)
                    found = os.wait4(process.pid, 0)
                    break
                time.sleep(_POLL_SECONDS)
            _, status, usage = found
            process.returncode = os.waitstatus_to_exitcode(status)
            printed.seek(0)
            text = printed.read()
        if process.returncode not in (0, -signal.SIGKILL):
            raise SystemExit(f"prepare failed with {process.returncode}: {text}")
        read = re.search(r"^num_read: (\d+)$", text, re.MULTILINE)
        return _Attempt(
            # A kill after this mark hits a process that only takes itself down.
            is_killed=process.returncode != 0 and not self._is_published(),
            seconds=time.monotonic() - begin,
            cpu_seconds=usage.ru_utime + usage.ru_stime,
            peak_mib=usage.ru_maxrss / 1024,
            num_read=int(read[1]) if read else 0,
        )

    def _is_published(self) -> bool:
        return any(
            '"is_published": true' in path.read_text() for path in self.folder.glob("root/prepared/*/latest.json")
        )

    def left(self) -> list[str]:
        """Return all files besides the dataset, its report and the pointer to it."""
        below = sorted(path.relative_to(self.folder) for path in self.folder.rglob("*"))
        expected = re.compile(r"outputs(/out(/[^/]+|\.html)?)?|tmp|root(/prepared(/\w+(/latest\.json|/parts)?)?)?")
        return [str(path) for path in below if not expected.fullmatch(str(path))]

    def num_bytes(self) -> int:
        """Return the size of all files."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())

    def differences(self, other: "_Place") -> list[str]:
        """Return the files in which the dataset differs from the other one."""
        sides = [
            {str(path.relative_to(place.folder)): path for path in (place.folder / "outputs").rglob("*")}
            for place in (self, other)
        ]
        names = sorted(sides[0].keys() | sides[1].keys())
        return [
            name
            for name in names
            if not all(name in side for side in sides)
            or (sides[0][name].is_file() and not filecmp.cmp(sides[0][name], sides[1][name], shallow=False))
        ]


def main() -> int:
    """Print a line per attempt and a summary; return 1 if a dataset differs or something is left."""
    if sys.argv[1:2] == ["release"]:
        return soak_release.main(sys.argv[2:])
    if sys.argv[1:2] == ["training"]:
        return soak_training.main(sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--num-images", type=int, default=200_000)
    parser.add_argument("--num-kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        source = Path(folder) / "source"
        tiny_images.write(source, options.num_images)
        undisturbed = _Place(folder=Path(folder) / "undisturbed", source=source)
        whole = undisturbed.attempt()
        print(f"without a kill: {_described(whole)}", flush=True)
        return _soak(_Place(folder=Path(folder) / "killed", source=source), undisturbed, whole, options)


def _soak(place: _Place, undisturbed: _Place, whole: _Attempt, options: argparse.Namespace) -> int:
    rng = random.Random(options.seed)
    attempts: list[_Attempt] = []
    faults: list[str] = []
    num_kills = num_datasets = 0
    while num_kills < options.num_kills or attempts[-1].is_killed:
        is_last = num_kills == options.num_kills
        attempts.append(place.attempt(None if is_last else rng.uniform(0, whole.seconds)))
        num_bytes = place.num_bytes()
        print(f"attempt {len(attempts)}: {_described(attempts[-1])}, {num_bytes / 2**20:.1f} MiB on disk", flush=True)
        if attempts[-1].is_killed:
            num_kills += 1
            continue
        num_datasets += 1
        faults += [f"differs: {name}" for name in place.differences(undisturbed)]
        faults += [f"left: {name}" for name in place.left()]
        shutil.rmtree(place.folder)
    for fault in faults:
        print(fault)
    finished = [attempt for attempt in attempts if not attempt.is_killed]
    print(
        f"{num_kills} kills, {num_datasets} datasets with {len(faults)} faults; attempts that finished read"
        f" {statistics.median(attempt.num_read for attempt in finished):,.0f} of {options.num_images:,} images"
        f" (median) in {statistics.median(attempt.seconds for attempt in finished):.1f} s; peak memory"
        f" {max(attempt.peak_mib for attempt in attempts):.0f} MiB, without a kill {whole.peak_mib:.0f} MiB"
    )
    return int(bool(faults))


def _described(attempt: _Attempt) -> str:
    end = "killed" if attempt.is_killed else f"finished, {attempt.num_read:,} images read"
    return f"{end} after {attempt.seconds:.1f} s, {attempt.cpu_seconds:.1f} s of CPU, {attempt.peak_mib:.0f} MiB"


if __name__ == "__main__":
    sys.exit(main())
