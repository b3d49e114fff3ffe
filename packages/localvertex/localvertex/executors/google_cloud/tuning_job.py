"""HyperparameterTuningJobRunOp: a local tuning job, whose trials are local custom jobs."""

from typing import ClassVar

from localvertex._base.compiled.payload import without_empty
from localvertex._base.compiled.spec import Container, Importer
from localvertex.executors.attempt import Attempt
from localvertex.executors.custom_job import read, run
from localvertex.executors.launcher import (
    LauncherExecutor,
    launcher_options,
    launcher_payload,
    target,
    write_resource,
)
from localvertex.jobs.tuning.job import TuningJob, read_tuning_job
from localvertex.jobs.tuning.run import TuningRun
from localvertex.jobs.tuning.suggestions import SEED
from localvertex.machines.studies.study import Algorithm
from localvertex.processes import logs

_MODULE = "google_cloud_pipeline_components.container.v1.hyperparameter_tuning_job.launcher"

_TYPE = "HyperparameterTuningJob"

BAYESIAN = (
    f"Vertex AI chooses the parameters of trials by Bayesian optimisation; here they are random, with seed {SEED}"
)


class TuningJobExecutor(LauncherExecutor):
    """Builds the job from the launcher's `--payload`, and runs its trials below the step's folder."""

    name: ClassVar[str] = "hyperparameter tuning job"
    modules = frozenset({_MODULE})

    def accepts(self, executor: Container | Importer) -> bool:
        """Accept a container that runs Google's module for a job of the user's own trials."""
        if not isinstance(executor, Container) or not super().accepts(executor):
            return False
        return launcher_options(list(executor.args)).get("type") == _TYPE

    def execute(self, attempt: Attempt) -> None:
        """Run the job to its end."""
        context, options = attempt.context, launcher_options(attempt.arguments())
        project, location = target(options, attempt)
        job = _read(attempt, options["payload"], location)
        if job.study.algorithm is Algorithm.ALGORITHM_UNSPECIFIED:
            context.warnings.add(BAYESIAN)
        number = attempt.scope.task["pipeline_task_uuid"]
        name = f"projects/{project}/locations/{location}/hyperparameterTuningJobs/{number}"
        write_resource(attempt, options, _TYPE, name, location)
        logs.add(attempt.log, f"hyperparameter tuning job {job.display_name!r} as {name}")
        title = attempt.scope.task["pipeline_task_name"]

        def report(text: str) -> None:
            logs.add(attempt.log, text)
            context.report(f"{title}: {text}")

        TuningRun(
            job,
            name=name,
            folder=attempt.folder,
            run_job=lambda job, trial: run(job, attempt, project, trial),
            stopped=context.processes.stopped,
            observe=attempt.report_custom_job,
            warn=lambda text: context.warnings.add(f"{attempt.label}: {text}"),
            report=report,
        ).execute()
        attempt.report_exit(0)


def _read(attempt: Attempt, template: str, location: str) -> TuningJob:
    payload = launcher_payload(template, attempt)
    # The pools of a trial are checked before empty ones are removed.
    message = without_empty(payload) | {"trial_job_spec": payload.get("trial_job_spec", {})}
    return read_tuning_job(message, lambda job: read(job, attempt, location))
