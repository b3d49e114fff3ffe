"""ModelUploadOp: an entry in the local model registry instead of Vertex's."""

import json
import re
from pathlib import Path
from typing import Any, ClassVar

from compiled.spec import Container, Importer
from localvertex.errors import TaskFailed
from localvertex.executors.attempt import Job, launcher_options, missing_options
from localvertex.executors.payload import launcher_payload, without_empty
from localvertex.processes import logs
from localvertex.state import executor_files, registry

MODULE = "google_cloud_pipeline_components.container.v1.model.upload_model.launcher"


class ModelUpload:
    """Builds the model from the launcher's arguments and commits it as the next version."""

    name: ClassVar[str] = "model upload"

    def accepts(self, executor: Container | Importer) -> bool:
        """A container that runs Google's module."""
        return isinstance(executor, Container) and MODULE in executor.command

    def refusals(self, executor: Container | Importer) -> list[str]:
        """A launcher without what it needs."""
        return missing_options(executor, "payload", "gcp_resources")

    def execute(self, job: Job) -> None:
        """Registers the model, writes `gcp_resources` and the model artifact as the launcher does."""
        options = launcher_options(job.arguments())
        model = {**launcher_payload(options["payload"], job), **unmanaged_model(job)}
        project = job.resolve(options.get("project", "")) or job.context.project
        location = job.resolve(options.get("location", "")) or job.context.region
        if location != job.context.region:
            job.context.warnings.say(
                f"{job.label}: the model goes to {location}, the pipeline runs in {job.context.region}; "
                "ModelUploadOp's location has a default of its own, set it"
            )
        if not (model.get("container_spec") or {}).get("image_uri"):
            job.context.warnings.say(f"{job.label}: the model names no serving container; Vertex AI cannot serve it")
        parent = job.resolve(options.get("parent_model_name", ""))
        try:
            version = registry.add(job.context.work_dir, without_empty(model), parent)
        except (ValueError, OSError) as error:
            raise TaskFailed(f"the model cannot be registered: {error}", is_retryable=False) from None
        name = f"projects/{project}/locations/{location}/models/{version.model_id}@{version.number}"
        prefix = f"https://{location}-aiplatform.googleapis.com/v1/"
        resource = {"resourceType": "UploadModel", "resourceUri": f"{prefix}{name}"}
        Path(job.resolve(options["gcp_resources"])).write_text(json.dumps({"resources": [resource]}, indent=2))
        planned = job.executor_input["outputs"]["artifacts"].get("model")
        if planned:
            artifact = planned["artifacts"][0] | {"uri": f"{prefix}{name}", "metadata": {"resourceName": name}}
            executor_files.write_output(job.executor_input, {"model": artifact})
        logs.add(job.log, f"registered {version.folder}")
        job.report_exit(0)


def unmanaged_model(job: Job) -> dict[str, Any]:
    """What the input artifact `unmanaged_container_model` says, in the API's snake_case as the launcher has it."""
    value = job.executor_input["inputs"]["artifacts"].get("unmanaged_container_model")
    if not value:
        return {}
    artifact = value["artifacts"][0]
    metadata = artifact.get("metadata", {})
    return {
        "predict_schemata": snake_case(metadata.get("predictSchemata", {})),
        "container_spec": snake_case(metadata.get("containerSpec", {})),
        "artifact_uri": artifact["uri"],
    }


def snake_case(value: Any) -> Any:
    """Keys of objects from camelCase to snake_case, at any depth."""
    if isinstance(value, list):
        return [snake_case(item) for item in value]
    if isinstance(value, dict):
        return {re.sub(r"(?<!^)(?=[A-Z])", "_", key).lower(): snake_case(item) for key, item in value.items()}
    return value
