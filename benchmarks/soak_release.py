"""Kills a release at random moments between `evaluate` and the live prediction, a given number of times.

    python -m benchmarks.soak release --num-kills 40

Half of the kills hit the run, the others any one of its processes; then the run is resumed, or submitted again. All
the time there are one champion, a model for each version, one version per checkpoint, and an endpoint whose versions
have all traffic. After each kill no process is left, and the endpoint predicts. Prints a line per attempt and the
figures; ends with an AssertionError at the first fault, and keeps the files.
"""

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.killed_release import KilledRelease
from tests.support.random_release_kills import RandomKills


def main(arguments: list[str]) -> int:
    """Kill releases and print what happened."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.soak release", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--num-kills", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="soak-release-"))
    _soak(folder, options)
    shutil.rmtree(folder)
    return 0


def _soak(folder: Path, options: argparse.Namespace) -> None:
    words = [sys.executable, "compile.py", "--settings", "tests/data/few_images.yaml"]
    words += ["--output-dir", str(folder / "build")]
    subprocess.run(words, cwd=Path(__file__).parent.parent, check=True, stdout=subprocess.DEVNULL)
    release = KilledRelease(folder, folder / "build" / "image_training.json")
    release.prepare()
    print(f"work folder: {folder}", flush=True)
    begin = time.monotonic()
    assert release.resume() == 0, release.output
    undisturbed_seconds = time.monotonic() - begin
    release.check_end()
    release.restore()
    print(f"without a kill: {undisturbed_seconds:.1f} s", flush=True)
    kills = RandomKills(release, seed=options.seed, max_seconds=undisturbed_seconds)
    while kills.num_kills < options.num_kills:
        print(f"attempt {len(kills.seconds) + 1}: {kills.attempt()}", flush=True)
        with release.server() as server:
            release.check_prediction(server)
    kills.finish()
    victims = ", ".join(f"{count} of {kind}" for kind, count in kills.victims.most_common())
    print(
        f"{kills.num_kills} kills ({victims}) in {len(kills.seconds)} attempts: {kills.num_completed} releases were"
        f" completed, without a fault; an attempt took {statistics.median(kills.seconds):.1f} s (median)"
    )
