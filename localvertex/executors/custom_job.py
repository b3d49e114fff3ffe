"""CustomTrainingJobOp: Google's launcher is replaced by a custom job on this machine."""

import json
from pathlib import Path
from typing import Any, ClassVar

from compiled.spec import Container, Importer
from localvertex import custom_jobs
from localvertex.errors import Cancelled, TaskFailed
from localvertex.executors.attempt import Job, launcher_options, missing_options
from localvertex.executors.payload import launcher_payload, without_empty
from localvertex.processes import logs

MODULE = "google_cloud_pipeline_components.container.v1.custom_job.launcher"


class CustomJob:
    """Builds the job from the launcher's `--payload` and runs it; writes `gcp_resources` as the launcher does."""

    name: ClassVar[str] = "custom job"

    def accepts(self, executor: Container | Importer) -> bool:
        """A container that runs Google's module."""
        return isinstance(executor, Container) and MODULE in executor.command

    def refusals(self, executor: Container | Importer) -> list[str]:
        """A launcher without what it needs."""
        return missing_options(executor, "payload", "gcp_resources")

    def execute(self, job: Job) -> None:
        """Runs the job to its end."""
        warnings = job.context.warnings
        if job.container.env or job.container.resources:
            warnings.say(
                f"{job.label}: environment variables, CPU and accelerator settings of this task reach the launcher, "
                "not the job; put them into worker_pool_specs"
            )
        options = launcher_options(job.arguments())
        payload = as_launched(launcher_payload(options["payload"], job))
        location = job.resolve(options.get("location", "")) or job.context.region
        project = job.resolve(options.get("project", "")) or job.context.project
        custom_job = custom_jobs.read(
            payload, region=location, warn=warnings.say, through_launcher=True, command_prefixes=job.context.images
        )
        name = f"projects/{project}/locations/{location}/customJobs/{job.scope.task['pipeline_task_uuid']}"
        self.write_resources(job, options, name, location)
        logs.add(job.log, f"custom job {custom_job.display_name!r} as {name}")
        outcome = custom_jobs.run(
            custom_job,
            workspace=custom_jobs.Workspace(folder=job.folder, private_dir=job.context.private_dir, project=project),
            processes=job.context.processes,
            observe=job.report_custom_job,
            warn=warnings.say,
            report=lambda text: job.context.tell(f"{job.scope.task['pipeline_task_name']}: {text}"),
            cancel=job.context.processes.stopped,
            options=job.context.custom_jobs,
        )
        if outcome.state is custom_jobs.JobState.CANCELLED:
            raise Cancelled
        if outcome.state is custom_jobs.JobState.FAILED:
            raise TaskFailed(outcome.error, exit_code=outcome.exit_code, is_retryable=not outcome.is_permanent)
        job.report_exit(0)

    @staticmethod
    def write_resources(job: Job, options: dict[str, str], name: str, location: str) -> None:
        """The GcpResources message, in JSON, where the launcher would put it."""
        resource: dict[str, Any] = {
            "resourceType": "CustomJob",
            "resourceUri": f"https://{location}-aiplatform.googleapis.com/v1/{name}",
        }
        path = Path(job.resolve(options["gcp_resources"]))
        path.write_text(json.dumps({"resources": [resource]}, indent=2))


def as_launched(payload: dict[str, Any]) -> dict[str, Any]:
    """What Google's launcher makes of the payload (custom_job/remote_runner.py of GCPC 2.22).

    Raises:
        TaskFailed: an empty pool stands before a filled one. The launcher drops it, and later pools change their role.
    """
    spec = payload.get("job_spec")
    pools = spec.get("worker_pool_specs") if isinstance(spec, dict) else None
    if isinstance(pools, list) and {} in pools[: max((i for i, pool in enumerate(pools) if pool), default=0)]:
        raise TaskFailed(
            "worker_pool_specs: an empty pool stands before a filled one; Google's launcher drops it, and the later "
            "pools move to another role. Fill the pool or leave out those after it",
            is_retryable=False,
        )
    launched: dict[str, Any] = without_empty(payload)
    job_spec = launched.get("job_spec")
    scheduling = job_spec.get("scheduling") if isinstance(job_spec, dict) else None
    if isinstance(scheduling, dict) and scheduling.get("strategy", "FLEX_START") != "FLEX_START":
        scheduling.pop("max_wait_duration", None)
    return launched
