"""CustomTrainingJobOp, v1 and preview: a local custom job replaces Google's launcher."""

import json
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from localvertex._base.compiled.payload import without_empty
from localvertex._base.compiled.spec import Container
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput import atomic_write
from localvertex.errors import Cancelled, TaskFailed
from localvertex.executors.attempt import Attempt
from localvertex.executors.launcher import (
    LauncherExecutor,
    launcher_options,
    launcher_payload,
    target,
    write_resource,
)
from localvertex.jobs import CustomJob, JobState, Outcome, Workspace, read_job, run_job
from localvertex.jobs.tuning.trial_run import TrialRun
from localvertex.processes import logs
from localvertex.store import executor_files

_MODULE = "google_cloud_pipeline_components.container.v1.custom_job.launcher"
_PREVIEW_MODULE = "google_cloud_pipeline_components.container.preview.custom_job.launcher"
"""Its payload also has `persistent_resource_id`."""

JOB_FILE = "custom_job.json"
"""File in the step's folder with the job that was started, as a CustomJob."""


class CustomJobExecutor(LauncherExecutor):
    """Builds the job from the launcher's `--payload`, runs it, and writes `gcp_resources` as the launcher does."""

    name: ClassVar[str] = "custom job"
    modules = frozenset({_MODULE, _PREVIEW_MODULE})

    def execute(self, attempt: Attempt) -> None:
        """Run the job to its end."""
        warnings = attempt.context.warnings
        if attempt.container.env or attempt.container.resources:
            warnings.add(
                f"{attempt.label}: environment variables, CPU and accelerator settings of this task apply to the "
                "launcher, not to the job; set them in worker_pool_specs"
            )
        options = launcher_options(attempt.arguments())
        payload = launcher_payload(options["payload"], attempt)
        project, location = target(options, attempt)
        custom_job = read(payload, attempt, location)
        message = {"display_name": custom_job.display_name, "job_spec": custom_job.spec}
        text = attempt.context.credentials.secrets.remove(json.dumps(message))
        atomic_write.write_text(attempt.folder / JOB_FILE, text)
        name = f"projects/{project}/locations/{location}/customJobs/{attempt.scope.task['pipeline_task_uuid']}"
        write_resource(attempt, options, "CustomJob", name, location)
        logs.add(attempt.log, f"custom job {custom_job.display_name!r} as {name}")
        attempt.context.fault_ledger.shortages.check_quota(custom_job, attempt.report)
        outcome = run(custom_job, attempt, project)
        if outcome.state is JobState.CANCELLED:
            raise Cancelled
        if outcome.state is JobState.FAILED:
            raise TaskFailed(outcome.error, exit_code=outcome.exit_code, is_retryable=not outcome.is_permanent)
        attempt.report_exit(0)


def read(payload: JsonObject, attempt: Attempt, location: str) -> CustomJob:
    """Check a CustomJob message of a launcher, and build the job.

    Raises:
        TaskFailed: It cannot run.
    """
    return read_job(
        _launcher_job(payload, attempt.container),
        region=location,
        warn=attempt.context.warnings.add,
        choice=attempt.context.containers,
    )


def run(job: CustomJob, attempt: Attempt, project: str, trial: TrialRun | None = None) -> Outcome:
    """Run a job in the folder of the task or trial, and report its events under the task's name."""
    context = attempt.context
    folder = trial.folder if trial else attempt.folder
    context.buckets.check_writable(job.base_output_directory)
    executor_files.write_rows(attempt.component, folder)
    return run_job(
        job,
        workspace=Workspace(
            folder=folder,
            private_dir=context.private_dir,
            project=project,
            buckets=context.buckets.root,
            keeps_addresses=context.buckets.keeps_addresses,
            readable=(context.run_dir, *context.given_paths, *map(Path, attempt.component.bigquery.values())),
        ),
        processes=context.processes,
        credentials=context.credentials,
        containers=context.containers,
        observe=trial.observe if trial else attempt.report_custom_job,
        warn=context.warnings.add,
        report=lambda text: attempt.report(f"trial {trial.id}: {text}" if trial else text),
        cancel=trial.cancel if trial else context.processes.stopped,
        injected=context.faults,
        ledger=context.fault_ledger,
        gpus=trial.gpus if trial else None,
    )


def _launcher_job(payload: JsonObject, container: Container) -> JsonObject:
    """Return the job that Google's launcher sends for this payload.

    Raises:
        TaskFailed: An empty pool precedes a filled one.
    """
    return _as_launched(_with_numbers(payload) if _PREVIEW_MODULE in container.command else payload)


def _with_numbers(payload: JsonObject) -> JsonObject:
    """Return the payload with the two fields of pool 0 decoded that the preview launcher decodes from text.

    After `parse_nested_json_strings` of preview/custom_job/remote_runner.py in google-cloud-pipeline-components 2.22.
    """
    spec = payload.get("job_spec")
    pools = spec.get("worker_pool_specs") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(pools, list) or not pools or not isinstance(pools[0], dict):
        return payload
    pool = dict(pools[0])
    for name, field in (("machine_spec", "accelerator_count"), ("disk_spec", "boot_disk_size_gb")):
        fields = pool.get(name)
        if isinstance(fields, dict) and isinstance(text := fields.get(field), str):
            with suppress(ValueError):
                pool[name] = fields | {field: json.loads(text)}
    return payload | {"job_spec": spec | {"worker_pool_specs": [pool, *pools[1:]]}}


def _as_launched(payload: JsonObject) -> JsonObject:
    """Return the payload as Google's launcher sends it (custom_job/remote_runner.py of GCPC 2.22).

    Raises:
        TaskFailed: An empty pool precedes a filled one. The launcher drops it, and later pools change their role.
    """
    spec = payload.get("job_spec")
    pools = spec.get("worker_pool_specs") if isinstance(spec, dict) else None
    if isinstance(pools, list) and {} in pools[: max((i for i, pool in enumerate(pools) if pool), default=0)]:
        raise TaskFailed(
            "worker_pool_specs: an empty pool precedes a filled one; Google's launcher drops it, and the later pools "
            "get another role. Fill the pool or remove those after it",
            is_retryable=False,
        )
    launched: JsonObject = without_empty(payload)
    job_spec = launched.get("job_spec")
    scheduling = job_spec.get("scheduling") if isinstance(job_spec, dict) else None
    if isinstance(scheduling, dict) and scheduling.get("strategy", "FLEX_START") != "FLEX_START":
        scheduling.pop("max_wait_duration", None)
    return launched
