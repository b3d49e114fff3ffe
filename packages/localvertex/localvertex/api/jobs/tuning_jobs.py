"""The collection hyperparameterTuningJobs: studies whose trials run as in pipelines."""

import json

from localvertex._base.lines import WriteLine
from localvertex.api.jobs.collection import JobCollection, RunningJob, failed
from localvertex.api.jobs.host import JobHost
from localvertex.api.rest import messages
from localvertex.api.rest.call import Call
from localvertex.api.rest.errors import Status, invalid, refusing
from localvertex.api.rest.records import Resource
from localvertex.api.rest.store import Store
from localvertex.errors import Cancelled, TaskFailed
from localvertex.executors.google_cloud.tuning_job import BAYESIAN
from localvertex.jobs import JobState
from localvertex.jobs.status import FINAL_STATES
from localvertex.jobs.tuning.job import TuningJob, read_tuning_job
from localvertex.jobs.tuning.run import FILE, TuningRun
from localvertex.machines.studies.study import Algorithm

_MAX_PARALLEL = 100
"""Trials that one machine may be asked to run at once."""


class TuningJobs(JobCollection):
    """The hyperparameter tuning jobs of the API.

    Args:
        store: The records of the server.
        log: Called with the start, the end, the trials and the warnings of each job.
        host: Runs the trials.
    """

    collection, message = "hyperparameterTuningJobs", "HyperparameterTuningJob"
    objects = ("studySpec", "trialJobSpec")
    optional = ("maxTrialCount", "parallelTrialCount", "maxFailedTrialCount")

    def __init__(self, store: Store, log: WriteLine, host: JobHost) -> None:
        super().__init__(store, log)
        self._host = host

    def create(self, call: Call) -> Resource:
        """Start a job."""
        body = messages.parse("HyperparameterTuningJob", call.body)
        message = messages.normalise("HyperparameterTuningJob", self.inputs(body), snake_case=True)
        region = call.location.region
        warnings: list[str] = []
        with refusing(Status.INVALID_ARGUMENT, TaskFailed):
            job = read_tuning_job(message, lambda each: self._host.read(each, region, warnings.append))
        if job.parallel_trials > _MAX_PARALLEL:
            raise invalid(f"parallelTrialCount: expected up to {_MAX_PARALLEL}, found {job.parallel_trials}")
        if job.study.algorithm is Algorithm.ALGORITHM_UNSPECIFIED:
            warnings.append(BAYESIAN)
        return self._start(
            call.location,
            body,
            lambda running: self._run(running, job, call.location.project),
            dict.fromkeys(warnings),
        ).resource

    def _run(self, running: RunningJob, job: TuningJob, project: str) -> Resource:
        """Run the trials."""
        with self._host.surroundings(running) as (machine, ledger):
            tuning = TuningRun(
                job,
                name=running.resource["name"],
                folder=running.folder,
                run_job=lambda each, trial: self._host.run(
                    each,
                    running,
                    ledger,
                    project,
                    credentials=machine.credentials,
                    trial=trial,
                    observe=trial.observe,
                ),
                stopped=running.processes.stopped,
                observe=lambda _: None,
                warn=running.warn,
                report=running.report,
            )
            self._follow(running, JobState.RUNNING)
            try:
                tuning.execute()
                end = {"state": str(JobState.SUCCEEDED)}
            except Cancelled:
                end = {"state": str(JobState.CANCELLED)}
            except TaskFailed as error:
                end = failed(Status.INVALID_ARGUMENT, str(error))
        return end | {"trials": self._trials(running.resource)}

    def _trials(self, job: Resource) -> list[Resource]:
        """Return the trials of a job from its folder; none of a damaged record."""
        try:
            found = json.loads((self._folder(job["name"].rpartition("/")[2]) / FILE).read_text())["trials"]
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            return []
        return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []

    def _stop_fields(self, job: Resource) -> Resource:
        """Return the fields of a job that ended with its server."""
        stopped = [
            each | {"state": "STOPPING"} if each.get("state") == "ACTIVE" else each for each in self._trials(job)
        ]
        return super()._stop_fields(job) | {"trials": stopped}

    def _shown(self, job: Resource) -> Resource:
        """Return a job with its trials."""
        trials = {} if job["state"] in FINAL_STATES else {"trials": self._trials(job)}
        return super()._shown(job) | trials
