"""CustomTrainingJobOp: Google's launcher is replaced by a custom job on this machine."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any, ClassVar

from localvertex import custom_jobs, logs
from localvertex.executors.python_step import bin_folder
from localvertex.job import Job, launcher_options, missing_options
from localvertex.payload import launcher_payload
from localvertex.replica_environment import make_output_directory, replica_environment
from localvertex.spec import Container, Importer

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
        payload = launcher_payload(options["payload"], job)
        location = job.resolve(options.get("location", "")) or job.context.region
        project = job.resolve(options.get("project", "")) or job.context.project
        custom_job = custom_jobs.from_payload(payload)
        custom_jobs.check(custom_job, location, warnings)
        name = f"projects/{project}/locations/{location}/customJobs/{job.scope.task['pipeline_task_uuid']}"
        self.write_resources(job, options, name, location)
        logs.add(job.log, f"custom job {custom_job.display_name!r} as {name}")
        make_output_directory(custom_job.base_output_directory)
        replica = custom_job.replicas[0]
        with tempfile.TemporaryDirectory(prefix="localvertex-", ignore_cleanup_errors=True) as temporary:
            service = replica_environment(custom_job, replica, project)
            path = {"PATH": job.environment(bin_folder())["PATH"], "TMPDIR": temporary, "PYTHONUNBUFFERED": "1"}
            custom_jobs.run(custom_job, job, {**os.environ, **path, **service, **replica.env})

    @staticmethod
    def write_resources(job: Job, options: dict[str, str], name: str, location: str) -> None:
        """The GcpResources message, in JSON, where the launcher would put it."""
        resource: dict[str, Any] = {
            "resourceType": "CustomJob",
            "resourceUri": f"https://{location}-aiplatform.googleapis.com/v1/{name}",
        }
        path = Path(job.resolve(options["gcp_resources"]))
        path.write_text(json.dumps({"resources": [resource]}, indent=2))
