"""ModelUploadOp: add a version to the local model registry instead of Vertex AI's."""

import re
from typing import Any, ClassVar

from localvertex._base.compiled.payload import without_empty
from localvertex._base.json_object import JsonObject
from localvertex._base.nested import changed
from localvertex._base.userinput.errors import UserError
from localvertex.containers.serving.container import ServingContainer
from localvertex.errors import TaskFailed
from localvertex.executors.attempt import Attempt
from localvertex.executors.launcher import (
    LauncherExecutor,
    launcher_options,
    launcher_payload,
    target,
    warn_of_location,
    write_artifact,
    write_resource,
)
from localvertex.processes import logs
from localvertex.store import registry
from localvertex.store.models.reading import UPLOADED_BY

_MODULE = "google_cloud_pipeline_components.container.v1.model.upload_model.launcher"


class ModelUploadExecutor(LauncherExecutor):
    """Builds the model from the launcher's arguments and commits it as the next version."""

    name: ClassVar[str] = "model upload"
    modules = frozenset({_MODULE})

    def execute(self, attempt: Attempt) -> None:
        """Register the model, and write `gcp_resources` and the model artifact as the launcher does."""
        options = launcher_options(attempt.arguments())
        model = {**launcher_payload(options["payload"], attempt), **unmanaged_model(attempt)}
        project, location = target(options, attempt)
        warn_of_location(location, attempt, done="the model is uploaded to", operation="ModelUploadOp")
        if not (model.get("container_spec") or {}).get("image_uri"):
            text = "the model has no serving container; Vertex AI cannot serve it"
            attempt.warn(text)
        else:
            _warn_of_container(model, attempt)
        if artifact_uri := model.get("artifact_uri"):
            model["artifact_uri"] = attempt.context.buckets.model_files(artifact_uri)
        parent = attempt.resolve(options.get("parent_model_name", ""))
        aliases = model.pop("version_aliases", []) or []
        if not isinstance(aliases, list):
            text = f"version_aliases {str(aliases)[:200]!r}: expected a list of strings"
            raise TaskFailed(text, is_retryable=False)
        context = attempt.context
        # A step that was killed after the upload, or is tried again, continues with its version, as the launcher does.
        step = f"{context.job['pipeline_job_uuid']}/{attempt.folder.relative_to(context.run_dir)}"
        try:
            version = registry.add(
                context.work_dir,
                without_empty(model) | {UPLOADED_BY: step},
                parent,
                [str(each) for each in aliases],
                context.processes.check_stopped,
            )
        except (ValueError, OSError) as error:
            raise TaskFailed(f"cannot register the model: {error}", is_retryable=False) from None
        if version.uncopied:
            context.warnings.add(
                f"{attempt.label}: {version.uncopied} contains the work folder, so the registry uses the model's "
                "files where they are, without a copy of its own"
            )
        name = f"projects/{project}/locations/{location}/models/{version.model_id}@{version.number}"
        write_resource(attempt, options, "UploadModel", name, location)
        write_artifact(attempt, "model", name, location)
        logs.add(attempt.log, f"registered {version.folder}")
        attempt.report_exit(0)


def _warn_of_container(model: JsonObject, attempt: Attempt) -> None:
    """Warn when the model is registered although it cannot be served here."""
    try:
        text = ServingContainer.of_model(model).problem(attempt.context.containers)
    except UserError as error:
        text = str(error)
    if text:
        attempt.context.warnings.add(f"{attempt.label}: the model is registered, but cannot be served here: {text}")


def unmanaged_model(attempt: Attempt) -> JsonObject:
    """Return the fields of the input artifact `unmanaged_container_model`, in the launcher's snake_case."""
    value = attempt.executor_input["inputs"]["artifacts"].get("unmanaged_container_model")
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
    """Rename the keys of objects from camelCase to snake_case, at any depth."""
    return changed(value, change_key=lambda key: re.sub(r"(?<!^)(?=[A-Z])", "_", key).lower())
