"""Trains with faults at random moments: `python -m benchmarks.soak.training --num-faults 100 --seed 1`.

Each part is a short exact training on one device, or of two workers in turns, with one to three faults. After each
fault the same job or a new job is started. In the end weights, batch digests, best step and result are those of an
undisturbed run; what is refused is refused by name and changes nothing.
"""

import contextlib
import functools
import os
import random
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.soak import small_disks
from benchmarks.soak.record import Fault, Soak, options

_RUN = (
    "--exact",
    "--epochs=30",
    "--global-batch-size=32",
    "--checkpoint-every-steps=4",
    "--checkpoint-every-seconds=0",
    "--augment=flip-and-shift",
    "--learning-rate=0.01",
    "--patience=2",
)
_METRICS = ("accuracy", "macro-f1")
_CHANCE_OF_A_PROGRAM = 0.2
"""Jobs that are started as new processes, not forked."""


def main() -> int:
    """Disturb runs; return 1 if one of them ended otherwise."""
    can_mount = small_disks.enter_namespace("training")
    given = options("training", __doc__, num_faults=100, smoke_values={"num_faults": 4})
    os.environ.update(CUDA_VISIBLE_DEVICES="-1", KERAS_BACKEND="tensorflow", TF_CPP_MIN_LOG_LEVEL="3")
    soak = Soak("training", given)
    return soak.run(_Proof(soak, seed=given.seed, can_mount=can_mount).disturb)


class _Proof:
    """Training runs with faults."""

    def __init__(self, soak: Soak, *, seed: int, can_mount: bool) -> None:
        self._soak, self._seed, self._can_mount = soak, seed, can_mount
        self._folder = soak.folder
        self._undisturbed: dict[tuple[int, str], Path] = {}

    def disturb(self, number: int) -> list[Fault]:
        """Disturb a run until it has ended, and compare it."""
        from tests.support.disturbed_run import DisturbedRun, TooLate

        draw = random.Random(f"{self._seed}-{number}")
        num_workers, metric = 1 + number % 2, draw.choice(_METRICS)
        is_forked = draw.random() >= _CHANCE_OF_A_PROGRAM
        undisturbed = self._undisturbed_run(num_workers, metric)
        folder = self._folder / f"run-{number}"
        folder.mkdir()
        if self._can_mount:
            small_disks.mount(folder)
        words = [*_RUN, f"--dataset={self._dataset}", f"--metric={metric}"]
        run = DisturbedRun(folder, draw, words, num_workers=num_workers, undisturbed=undisturbed, is_forked=is_forked)
        faults: list[Fault] = []
        place = "two workers" if num_workers > 1 else "one device"
        try:
            for kind, disturb in self._drawn(draw, num_workers):
                # Named first, because it may be what fails.
                print(f"  {kind}, {place}{'' if is_forked else ', programs'}", flush=True)
                with contextlib.suppress(TooLate):
                    faults.append(Fault(f"{kind}, {place}", disturb(run)))
            run.finish()
        except Exception:
            logs = [path for path in self._folder.glob(f"{folder.name}-*") if path.is_file()]
            for log in logs if not self._can_mount else ():
                shutil.copy(log, folder)
            self._soak.keep(folder, number)
            raise
        finally:
            self._remove(folder)
        return faults

    def _remove(self, folder: Path) -> None:
        if self._can_mount:
            small_disks.unmount(folder)
        shutil.rmtree(folder)
        for path in self._folder.glob(f"{folder.name}-*"):
            path.unlink()

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

    @functools.cached_property
    def _dataset(self) -> Path:
        from trainer.prepare import prepare

        dataset, report = self._folder / "dataset", str(self._folder / "report.html")
        prepare(source="digits", output_directory=str(dataset), report_path=report, image_size=16, max_examples=300)
        return dataset

    def _undisturbed_run(self, num_workers: int, metric: str) -> Path:
        """Return the checkpoint directory of a run without a fault."""
        from tests.support.forked_job import ForkedJob

        if (key := (num_workers, metric)) not in self._undisturbed:
            folder = self._folder / f"undisturbed-{num_workers}-{metric}"
            words = [*_RUN, f"--dataset={self._dataset}", f"--metric={metric}", f"--checkpoint-directory={folder}"]
            ForkedJob(folder, words, num_workers, job_id="0").run(max_attempts=1)
            self._undisturbed[key] = folder
        return self._undisturbed[key]


if __name__ == "__main__":
    sys.exit(main())
