"""One training run with faults: it is started again after each of them, and ends as an undisturbed run."""

import contextlib
import itertools
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from exact_resume.checkpoints import checkpoints, manifest
from exact_resume.checkpoints.checkpoints import Checkpoint
from exact_resume.checkpoints.result_file import is_finished
from exact_resume.events import log as event_log
from tests.support.forked_job import Deed, ForkedJob

_LIMIT_SECONDS = 120
"""All machines have ended this long after a fault."""
_CHANCE_OF_ANOTHER_JOB = 0.5
_CHANCE_OF_THE_START = 0.25
START_SECONDS = 3.0
_EQUAL = (
    "run_id",
    "weights_sha256",
    "batch_digests",
    "best_step",
    "final_step",
    "stop_reason",
    "devices",
    "validation_accuracy",
    "validation_loss",
    "lost_best_step",
    "metric",
    "score",
)
"""Fields of the result that a fault must not change."""


class TooLate(Exception):
    """The run was finished before the fault."""


class DisturbedRun:
    """One run. An AssertionError is a defect.

    Args:
        folder: Checkpoint folder, which exists; logs are beside it. It is a small disk if faults are to fill it.
        draw: Random numbers.
        arguments: Of `trainer.task`, without the checkpoint folder.
        num_workers: 1 or 2.
        undisturbed: Checkpoint folder of an equal run without faults.
        is_forked: Whether jobs are forked from this process.
    """

    def __init__(
        self,
        folder: Path,
        draw: random.Random,
        arguments: list[str],
        *,
        num_workers: int,
        undisturbed: Path,
        is_forked: bool = True,
    ) -> None:
        self.folder, self.draw, self.num_workers, self._undisturbed = folder, draw, num_workers, undisturbed
        self._arguments, self._is_forked = [*arguments, f"--checkpoint-directory={folder}"], is_forked
        self._wanted = json.loads((undisturbed / "result.json").read_text())
        self._ids = map(str, itertools.count(1))
        self._id = next(self._ids)

    def job(self, *flags: str, deed: Deed | None = None, num_workers: int = 0, is_other: bool = False) -> ForkedJob:
        """Return the next start of the run: of the same job, or of another one, perhaps by chance."""
        if is_other or self.draw.random() < _CHANCE_OF_ANOTHER_JOB:
            self._id = next(self._ids)
        return ForkedJob(
            self.folder,
            [*self._arguments, "--peer-timeout-seconds=60", *flags],
            num_workers or self.num_workers,
            job_id=self._id,
            deed=deed,
            is_forked=self._is_forked or deed is not None,
        )

    @contextlib.contextmanager
    def started(self, job: ForkedJob) -> Iterator[ForkedJob]:
        """Start a job; in the end wait for all machines."""
        job.start()
        try:
            yield job
            codes = job.wait_for_all(_LIMIT_SECONDS)
            assert None not in codes, f"after {_LIMIT_SECONDS} s the exit codes are {codes}"
        finally:
            job.end()

    def reach(self, job: ForkedJob) -> None:
        """Wait until a random moment of the start, or until a random step."""
        if self.draw.random() < _CHANCE_OF_THE_START:
            until = time.monotonic() + self.draw.uniform(0, START_SECONDS)
            job.wait(until=lambda: time.monotonic() >= until)
            return
        first = max(checkpoints.steps(str(self.folder)), default=0)
        self.reach_step(job, self.draw.randint(first + 1, max(first + 1, self._wanted["final_step"])))

    def reach_step(self, job: ForkedJob, step: int) -> None:
        """Wait until the job has reached a step, or has ended."""
        num_starts = self.num_starts()
        job.wait(until=lambda: self.num_starts() > num_starts and job.last_step() >= step)

    def num_starts(self) -> int:
        """Return how many times a chief has started to train."""
        return sum(event["event"] == "start" for event in self.events())

    def events(self) -> list[dict[str, Any]]:
        """Return the event log of the chiefs."""
        return [event for event in event_log.read(str(self.folder)) if event["replica"] == event_log.PRIMARY]

    def content(self) -> dict[str, bytes]:
        """Return the content of all files except TensorBoard's, which are written in the background."""
        paths = [path for path in self.folder.rglob("*") if path.is_file() and "tensorboard" not in path.parts]
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in paths}

    def codes(self, job: ForkedJob, *expected: set[int]) -> str:
        """Describe the exit codes of an attempt; each of them must be one of those that its machine may have.

        Raises:
            TooLate: All machines have finished.
        """
        found = [128 - code if code and code < 0 else code for code in job.exit_codes[-1]]
        if not any(found):
            raise TooLate
        for place, code in enumerate(found):
            assert code in expected[min(place, len(expected) - 1)], f"the exit codes are {found}"
        return ", ".join(f"{name} {code}" for name, code in zip(("chief", "worker"), found, strict=False))

    def refused(self, job: ForkedJob, text: str, *expected: set[int]) -> str:
        """Describe a start that printed one line of an error with a text; to finish is a defect."""
        assert any(job.exit_codes[-1]), "it has finished instead of being refused"
        said = job.said(0)
        assert "Traceback" not in said, said[-3000:]
        errors = [line for line in said.splitlines() if line.startswith(("error: ", "failed: "))]
        assert len(errors) == 1, said[-3000:]
        assert text in errors[0], said[-3000:]
        return f"{self.codes(job, *expected)}: refused"

    def require_checkpoint(self, *, has_older_best: bool = False) -> Checkpoint:
        """Return the newest intact checkpoint; train until there is one and kill the job, which is not counted.

        Args:
            has_older_best: Whether an older checkpoint has to be the best of the whole run, whose loss changes the end.
        """

        def find() -> Checkpoint | None:
            found, _ = checkpoints.newest(str(self.folder))
            is_late = found is not None and found.best.step == self._wanted["best_step"] < found.step
            return found if is_late or not has_older_best else None

        while not (found := find()):
            with self.started(self.job()) as job:
                job.wait(until=lambda: find() is not None)
                for worker in job.workers:
                    worker.kill()
        return found

    def finish(self) -> None:
        """Start the run once more; it ends as the undisturbed one has ended."""
        with self.started(self.job()) as job:
            pass
        assert not any(job.exit_codes[-1]), f"the exit codes are {job.exit_codes[-1]}"
        assert is_finished(str(self.folder))
        found = json.loads((self.folder / "result.json").read_text())
        for name in _EQUAL:
            assert found.get(name) == self._wanted.get(name), f"{name}: {found.get(name)}, not {self._wanted.get(name)}"
        for name in (checkpoints.VARIABLES_FILE, manifest.MANIFEST_FILE):
            paths = [folder / found["best_checkpoint"] / name for folder in (self.folder, self._undisturbed)]
            assert paths[0].read_bytes() == paths[1].read_bytes(), f"{name} of the best checkpoint differs"
        assert not [path for path in self.folder.iterdir() if path.name.endswith(".partial")]
