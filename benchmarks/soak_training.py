"""Trains with faults at random moments until a given number of them has happened; each run ends as without them.

    python -m benchmarks.soak training --num-faults 100 --seed 1

Each run is a short exact training on one device, or of two workers in turns, with one to three faults. After each
fault the same job or another one is started. In the end weights, batch digests, best step and result equal those of an
undisturbed run; what is refused is refused by name and changes nothing. Prints a line per run and a table; the exit
code is 1 if a run ends otherwise, whose files are then kept.
"""

import argparse
import datetime
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_MOUNT = ("mount", "-t", "tmpfs", "-o", "size=64m", "none")
_IN_NAMESPACE = "SOAK_CAN_MOUNT"
"""Variable of a process that may mount small disks."""
_RUN = (
    "--exact",
    "--epochs=30",
    "--global-batch-size=32",
    "--checkpoint-every-steps=4",
    "--augment=flip-and-shift",
    "--learning-rate=0.01",
    "--patience=2",
)
_METRICS = ("accuracy", "macro-f1")
_CHANCE_OF_A_PROGRAM = 0.2
"""Jobs that are started as new processes, not forked."""


def main(arguments: list[str]) -> int:
    """Disturb runs and print what happened; return 1 if one of them ended otherwise."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.soak training", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--num-faults", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first-run", type=int, default=0, metavar="N", help="begin with run N, to see it again")
    options = parser.parse_args(arguments)
    can_mount = _enter_namespace(arguments)
    os.environ.update(CUDA_VISIBLE_DEVICES="-1", KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3")
    with tempfile.TemporaryDirectory(prefix="soak-training-") as folder:
        return _Soak(Path(folder), options, can_mount=can_mount).run()


def _enter_namespace(arguments: list[str]) -> bool:
    """Start this program again where it may mount small disks; return whether it may."""
    if _IN_NAMESPACE in os.environ:
        return True
    tried = ("unshare", "-rm", "sh", "-c", f"{' '.join(_MOUNT)} /mnt")
    if shutil.which("unshare") is None or subprocess.run(tried, capture_output=True).returncode:
        return False
    words = ("unshare", "-rm", sys.executable, "-m", "benchmarks.soak", "training", *arguments)
    os.execvpe("unshare", words, {**os.environ, _IN_NAMESPACE: "1"})


class _Soak:
    """All runs."""

    def __init__(self, folder: Path, options: argparse.Namespace, *, can_mount: bool) -> None:
        self._folder, self._options, self._can_mount = folder, options, can_mount
        self._outcomes: dict[str, Counter[str]] = defaultdict(Counter)
        self._num_by_workers: dict[str, Counter[int]] = defaultdict(Counter)
        self._ends = Counter[str]()
        self._undisturbed: dict[tuple[int, str], Path] = {}

    def run(self) -> int:
        """Disturb runs until there are enough faults."""
        from trainer.prepare import prepare

        started, load = time.monotonic(), os.getloadavg()
        report = str(self._folder / "report.html")
        prepare(
            source="digits",
            output_directory=str(self._folder / "dataset"),
            report_path=report,
            image_size=16,
            max_examples=300,
        )
        number = self._options.first_run
        while self._num_faults() < self._options.num_faults:
            self._disturb(number)
            number += 1
        self._print_table(time.monotonic() - started, load)
        return int(self._ends["failed"] > 0)

    def _num_faults(self) -> int:
        return sum(outcomes.total() for outcomes in self._outcomes.values())

    def _disturb(self, number: int) -> None:
        from tests.support.disturbed_run import DisturbedRun, TooLate

        draw = random.Random(f"{self._options.seed}-{number}")
        num_workers, metric = 1 + number % 2, draw.choice(_METRICS)
        is_forked = draw.random() >= _CHANCE_OF_A_PROGRAM
        undisturbed = self._undisturbed_run(num_workers, metric)
        folder = self._folder / f"run-{number}"
        folder.mkdir()
        if self._can_mount:
            subprocess.run([*_MOUNT, str(folder)], check=True)
        words = [*_RUN, f"--dataset={self._folder / 'dataset'}", f"--metric={metric}"]
        run = DisturbedRun(folder, draw, words, num_workers=num_workers, undisturbed=undisturbed, is_forked=is_forked)
        what = f"run {number}, {num_workers} x {metric}{'' if is_forked else ', programs'}:"
        try:
            for kind, disturb in self._drawn(draw, num_workers):
                what += f" {kind}"
                try:
                    outcome = disturb(run)
                except TooLate:
                    what += " (too late);"
                    continue
                self._outcomes[kind][outcome] += 1
                self._num_by_workers[kind][num_workers] += 1
                what += f" ({outcome});"
            run.finish()
            self._ends["equal"] += 1
            what += " equal"
        except Exception:
            self._ends["failed"] += 1
            kept = tempfile.mkdtemp(prefix=f"soak-training-failed-{number}-")
            what += f" FAILED, see {kept}\n{traceback.format_exc()}"
            shutil.copytree(self._folder, kept, dirs_exist_ok=True, ignore=lambda _, names: _others(names, number))
        print(f"[{self._num_faults()}] {what}", flush=True)
        self._remove(folder)

    def _remove(self, folder: Path) -> None:
        if self._can_mount:
            subprocess.run(["umount", str(folder)], check=True)
        shutil.rmtree(folder)
        for path in self._folder.glob(f"{folder.name}-*.log"):
            path.unlink()
        (self._folder / f"{folder.name}-released").unlink(missing_ok=True)

    def _drawn(self, draw: random.Random, num_workers: int) -> Iterator[tuple[str, Any]]:
        """Yield one to three faults; the last one may be one during which the run is finished."""
        from tests.support import training_faults as faults

        kinds = {**faults.ALONE, **(faults.TOGETHER if num_workers > 1 else {})}
        if not self._can_mount:
            del kinds["full disk, later room"]
        number = draw.randint(1, 3)
        for place in range(number):
            is_last = place == number - 1
            yield draw.choice(list({**kinds, **(faults.LAST if is_last else {})}.items()))

    def _undisturbed_run(self, num_workers: int, metric: str) -> Path:
        """Return the checkpoint folder of a run without a fault."""
        from tests.support.forked_job import ForkedJob

        if (key := (num_workers, metric)) not in self._undisturbed:
            folder = self._folder / f"undisturbed-{num_workers}-{metric}"
            words = [*_RUN, f"--dataset={self._folder / 'dataset'}", f"--metric={metric}"]
            words.append(f"--checkpoint-directory={folder}")
            ForkedJob(folder, words, num_workers, job_id="0").run(max_attempts=1)
            self._undisturbed[key] = folder
        return self._undisturbed[key]

    def _print_table(self, seconds: float, load: tuple[float, ...]) -> None:
        usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        cpu_seconds = sum(each.ru_utime + each.ru_stime for each in usage)
        result = json.loads((next(iter(self._undisturbed.values())) / "result.json").read_text())
        refused = sum(n for found in self._outcomes.values() for name, n in found.items() if "refused" in name)
        print(
            f"\n{datetime.datetime.now(datetime.UTC):%Y-%m-%d}, {result['devices'][0]['kind']}, load {load[0]:.1f} at"
            f" the start and {os.getloadavg()[0]:.1f} at the end; {seconds:,.0f} s, {cpu_seconds:,.0f} s of processor"
            f" time; seed {self._options.seed}: {self._num_faults()} faults in {self._ends.total()} runs,"
            f" {self._ends['equal']} ended as the undisturbed run, {self._ends['failed']} did not; {refused} starts"
            " were refused by name\n\n| fault | one device | two workers | exit codes |\n|---|---|---|---|"
        )
        for kind, outcomes in sorted(self._outcomes.items()):
            text = "; ".join(f"{name} ({count})" for name, count in outcomes.most_common())
            print(f"| {kind} | {self._num_by_workers[kind][1]} | {self._num_by_workers[kind][2]} | {text} |")


def _others(names: list[str], number: int) -> list[str]:
    return [name for name in names if name.startswith("run-") and name.split("-")[1].split(".")[0] != str(number)]
