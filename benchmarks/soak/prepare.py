"""Kills `prepare` at random moments: `python -m benchmarks.soak.prepare --num-images 200000 --num-faults 30`.

Each part makes a dataset, with one to three kills before. It has the bytes of one that was made without a kill, report
included, and nothing else is left. Prints what each attempt read, the peak memory and the disk's use.
"""

import dataclasses
import filecmp
import functools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.soak.record import Fault, Soak, options
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
            RuntimeError: It fails by itself.
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
            raise RuntimeError(f"prepare failed with {process.returncode}: {text}")
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


class _Proof:
    """Datasets with kills."""

    def __init__(self, soak: Soak, *, seed: int, num_images: int) -> None:
        self._soak, self._seed, self._num_images = soak, seed, num_images
        self._source = soak.folder / "source"
        self._seconds = 0.0

    def disturb(self, number: int) -> list[Fault]:
        """Make a dataset with kills, and compare it."""
        undisturbed = self._undisturbed
        draw = random.Random(f"{self._seed}-{number}")
        place = _Place(folder=self._soak.folder / f"part-{number}", source=self._source)
        faults: list[Fault] = []
        for moment in [*(draw.uniform(0, self._seconds) for _ in range(draw.randint(1, 3))), None]:
            attempt = place.attempt(moment)
            print(f"  {_described(attempt)}, {place.num_bytes() / 2**20:.1f} MiB on disk", flush=True)
            if not attempt.is_killed:
                # The first one of all has to read the program from the disk.
                self._seconds = min(self._seconds, attempt.seconds) if not faults else self._seconds
                break
            faults.append(Fault("SIGKILL of prepare", "resumed"))
        wrong = [f"differs: {name}" for name in place.differences(undisturbed)]
        wrong += [f"left: {name}" for name in place.left()]
        if wrong:
            self._soak.keep(place.folder, number)
        shutil.rmtree(place.folder)
        assert not wrong, wrong
        return faults

    @functools.cached_property
    def _undisturbed(self) -> _Place:
        """Return the dataset that was made without a kill, and note how long that took."""
        tiny_images.write(self._source, self._num_images)
        place = _Place(folder=self._soak.folder / "undisturbed", source=self._source)
        whole = place.attempt()
        print(f"without a kill: {_described(whole)}", flush=True)
        self._seconds = whole.seconds
        return place


def main() -> int:
    """Make datasets with kills; return 1 if one differs or something is left."""
    given = options("prepare", __doc__, num_faults=30, smoke_values={"num_faults": 4, "num_images": 300})
    soak = Soak("prepare", given)
    return soak.run(_Proof(soak, seed=given.seed, num_images=given.num_images).disturb)


def _described(attempt: _Attempt) -> str:
    end = "killed" if attempt.is_killed else f"finished, {attempt.num_read:,} images read"
    return f"{end} after {attempt.seconds:.1f} s, {attempt.cpu_seconds:.1f} s of CPU, {attempt.peak_mib:.0f} MiB"


if __name__ == "__main__":
    sys.exit(main())
