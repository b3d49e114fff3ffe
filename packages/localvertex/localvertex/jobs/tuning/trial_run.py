"""A running trial: its folder, its GPUs, its thread and its reports."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from localvertex._base.lines import WriteLine
from localvertex.containers.gpus import visible_gpus
from localvertex.errors import TaskFailed
from localvertex.jobs.gpus import num_gpus_of
from localvertex.jobs.job import CustomJob
from localvertex.jobs.status import JobStatus, Outcome
from localvertex.jobs.tuning.job import METRIC_FILE, TuningJob
from localvertex.jobs.tuning.measurements import MetricFile
from localvertex.jobs.tuning.trial import Trial


@dataclass(kw_only=True, eq=False)
class TrialRun:
    """A running trial, as seen by the code that runs its custom job."""

    trial: Trial
    folder: Path
    cancel: threading.Event
    """Set to cancel its job."""
    gpus: list[str] | None = None
    """The GPUs of this machine that it may use; None: all."""
    status: JobStatus = field(default_factory=JobStatus)
    outcome: Outcome | TaskFailed | None = None
    thread: threading.Thread | None = None
    metrics: MetricFile = field(init=False)

    def __post_init__(self) -> None:
        self.metrics = MetricFile(path=self.folder / METRIC_FILE)

    @property
    def id(self) -> str:
        """The number of the trial."""
        return self.trial.id

    def observe(self, status: JobStatus) -> None:
        """Record the status of its job."""
        self.status = status


RunJob = Callable[[CustomJob, TrialRun], Outcome]
"""Runs the custom job of a trial."""


def gpu_slots(job: TuningJob, warn: WriteLine) -> list[list[str] | None]:
    """Return one entry per trial that may run in parallel: its GPUs, None for all."""
    wanted, gpus, parallel = num_gpus_of(job.custom_job), visible_gpus(), job.parallel_trials
    if not wanted or not gpus:
        return [None] * parallel
    possible = max(1, min(parallel, len(gpus) // wanted))
    if possible < parallel:
        warn(
            f"each trial requests {wanted} GPU{'' if wanted == 1 else 's'}, and this machine has {len(gpus)}: "
            f"{possible} of the {parallel} parallel trials run at a time"
        )
    return [gpus[each * wanted : (each + 1) * wanted] for each in range(possible)]
