"""Kills releases at random moments between `evaluate` and the live prediction.

`python -m benchmarks.soak.release --num-faults 40`

A release is killed once to three times. Half of the kills hit the run, the others any one of its processes; then the
run is resumed, or submitted again, and in the end the release is completed. All the time there are one champion, a
model for each version, one version per checkpoint, and an endpoint whose versions have all traffic. After each kill no
process is left, and the endpoint predicts. Prints a line per attempt.
"""

import random
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.soak.record import Fault, Soak, options
from tests.support.killed_release import KilledRelease
from tests.support.random_release_kills import RandomKills


class _Proof:
    """Releases with kills, each from the same state."""

    def __init__(self, soak: Soak, *, seed: int) -> None:
        self._soak, self._seed = soak, seed
        self._release: tuple[KilledRelease, float] | None = None

    def disturb(self, number: int) -> list[Fault]:
        """Kill a release once to three times, and complete it."""
        folder = self._soak.folder / f"release-{number}"
        if self._release is None:
            self._release = _prepared(folder)
        release, seconds = self._release
        seed = f"{self._seed}-{number}"
        kills = RandomKills(release, seed=seed, max_seconds=seconds)
        try:
            for _ in range(random.Random(seed).randint(1, 3)):
                print(f"  {kills.attempt()}", flush=True)
                with release.server() as server:
                    release.check_prediction(server)
                if kills.num_completed:
                    break
            else:
                kills.finish()
        except Exception:
            self._release = None
            self._soak.keep(folder, number)
            raise
        return [Fault(f"SIGKILL of {victim}", "completed later") for victim in kills.victims.elements()]


def _prepared(folder: Path) -> tuple[KilledRelease, float]:
    """Return a release that has been evaluated, and how long the rest of it takes without a kill."""
    folder.mkdir()
    words = [sys.executable, "compile.py", "--settings", "tests/data/few_images.yaml"]
    words += ["--output-dir", str(folder / "build")]
    subprocess.run(words, cwd=Path(__file__).parents[2], check=True, stdout=subprocess.DEVNULL)
    release = KilledRelease(folder, folder / "build" / "image_training.json")
    release.prepare()
    begin = time.monotonic()
    assert release.resume() == 0, release.output
    seconds = time.monotonic() - begin
    release.check_end()
    release.restore()
    print(f"without a kill: {seconds:.1f} s", flush=True)
    return release, seconds


def main() -> int:
    """Kill releases; return 1 if one of them had a fault that lasted."""
    given = options("release", __doc__, num_faults=40, smoke_values={"num_faults": 1})
    soak = Soak("release", given)
    return soak.run(_Proof(soak, seed=given.seed).disturb)


if __name__ == "__main__":
    sys.exit(main())
