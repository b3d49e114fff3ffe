"""ModelGetOp: find a model in the local registry."""

import re
from typing import ClassVar

from localvertex.errors import TaskFailed
from localvertex.executors.attempt import Attempt
from localvertex.executors.launcher import LauncherExecutor, launcher_options, target, warn_of_location, write_artifact
from localvertex.processes import logs
from localvertex.store.models.reading import DEFAULT, ModelRecords

_MODULE = "google_cloud_pipeline_components.container.v1.model.get_model.launcher"

_NAME = re.compile(r"(?P<id>[A-Za-z0-9_-]+)(?:@(?P<version>[A-Za-z0-9_-]+))?")


class ModelGetExecutor(LauncherExecutor):
    """Writes the artifact of the version that `model_name` names: `ID`, `ID@VERSION` or `ID@ALIAS`."""

    name: ClassVar[str] = "model get"
    modules = frozenset({_MODULE})
    required = ("model_name", "executor_input")

    def execute(self, attempt: Attempt) -> None:
        """Look the model up, and write the artifact as the launcher does (get_model/remote_runner.py of GCPC 2.22)."""
        options = launcher_options(attempt.arguments())
        project, location = target(options, attempt)
        warn_of_location(location, attempt, done="the model is looked up in", operation="ModelGetOp")
        wanted = attempt.resolve(options["model_name"])
        match = _NAME.fullmatch(wanted)
        if not match:
            raise TaskFailed(f"model_name {wanted!r}: expected ID, ID@VERSION or ID@ALIAS", is_retryable=False)
        versions = ModelRecords(attempt.context.work_dir / "models" / match["id"])
        try:
            number = versions.number(match["version"] or DEFAULT)
        except LookupError as error:
            raise TaskFailed(f"NOT_FOUND: {error}") from None
        except ValueError as error:
            raise TaskFailed(f"cannot read the registry: {error}", is_retryable=False) from None
        name = f"projects/{project}/locations/{location}/models/{match['id']}@{number}"
        write_artifact(attempt, "model", name, location)
        logs.add(attempt.log, f"found {versions.folder / number}")
        attempt.report_exit(0)
