"""A hyperparameter tuning job: its study, its number of trials, and the custom job that each trial runs."""

import hashlib
import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex.errors import TaskFailed
from localvertex.jobs.job import CustomJob, TrialVariables
from localvertex.jobs.tuning.suggestions import Point, argument
from localvertex.machines.studies.message import Message, NotLocal
from localvertex.machines.studies.study import COUNTS, Study, read_counts, read_study

METRIC_FILE = "output.metrics"
"""File in the folder of a trial; cloudml-hypertune's default name."""

_FIELDS = ("display_name", "study_spec", "trial_job_spec", "encryption_spec", "labels", *COUNTS)

_EXIT_USER_ERROR = 2

ReadJob = Callable[[JsonObject], CustomJob]
"""Checks a CustomJob message and builds the job, or raises TaskFailed."""


@dataclass(frozen=True, kw_only=True)
class TuningJob:
    """A HyperparameterTuningJob message that has been checked."""

    display_name: str
    study: Study
    max_trials: int
    parallel_trials: int
    max_failed_trials: int
    """0: `TuningRun` decides."""
    custom_job: CustomJob
    """The job of each trial, without its parameters."""
    digest: str
    """Hash of everything that determines what each trial computes."""

    read_job: ReadJob
    """Builds a custom job from its message."""

    def trial_job(self, trial_id: str, point: Point, folder: Path) -> CustomJob:
        """Return the custom job of a trial, as the service builds it.

        Each container gets the parameters as arguments, and the output goes to `<base output directory>/<trial id>`
        (CustomJobSpec.base_output_directory in the API reference).
        """
        words = [f"--{name}={argument(value)}" for name, value in point.items()]
        spec = deepcopy(self.custom_job.spec)
        for pool in spec.get("worker_pool_specs", []):
            for name in {"container_spec", "python_package_spec"} & set(pool):
                pool[name]["args"] = [*pool[name].get("args", ()), *words]
        if base := self.custom_job.base_output_directory:
            spec["base_output_directory"] = {"output_uri_prefix": f"{base.rstrip('/')}/{trial_id}"}
        job = self.read_job({"display_name": self.display_name, "job_spec": spec})
        return replace(job, trial=TrialVariables(id=trial_id, metric_file=folder / METRIC_FILE))


def read_tuning_job(message: JsonObject, read_job: ReadJob) -> TuningJob:
    """Check a HyperparameterTuningJob message as Google's launcher sends it, and build the job.

    Args:
        message: Fields in snake_case.
        read_job: Checks a CustomJob message and builds the job.

    Raises:
        TaskFailed: The service would refuse the message, or part of it cannot run here.
    """
    try:
        fields = Message(message, "HyperparameterTuningJob", _FIELDS)
        counts = read_counts(message)
        study = read_study(fields.value("study_spec", {}))
    except UserError as error:
        text = str(error) if isinstance(error, NotLocal) else f"Vertex AI would refuse this tuning job: {error}"
        raise TaskFailed(text, exit_code=_EXIT_USER_ERROR, is_retryable=False) from None
    name = str(message.get("display_name", ""))
    custom_job = read_job({"display_name": name, "job_spec": message.get("trial_job_spec", {})})
    content = {name: message.get(name) for name in ("study_spec", "trial_job_spec")}
    return TuningJob(
        display_name=name,
        study=study,
        max_trials=counts[0],
        parallel_trials=counts[1],
        max_failed_trials=counts[2],
        custom_job=custom_job,
        read_job=read_job,
        digest=hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest(),
    )
