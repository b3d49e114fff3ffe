"""ModelDeleteOp: delete a model with all its versions from the local registry."""

import re
from typing import ClassVar
from uuid import uuid4

from localvertex.errors import TaskFailed
from localvertex.executors.attempt import Attempt
from localvertex.executors.launcher import LauncherExecutor, launcher_options, launcher_payload, write_resource
from localvertex.processes import logs
from localvertex.store.model_versions import ModelVersions

_MODULE = "google_cloud_pipeline_components.container.v1.model.delete_model.launcher"

_NAME = re.compile(r"(?P<name>projects/[^/]+/locations/(?P<location>[^/]+)/models/(?P<id>[A-Za-z0-9_-]+))(?:@[^/@]*)?")


class ModelDeleteExecutor(LauncherExecutor):
    """Deletes only what the registry made; the files of the user and of runs stay."""

    name: ClassVar[str] = "model delete"
    modules = frozenset({_MODULE})

    def execute(self, attempt: Attempt) -> None:
        """Delete the model whatever its version, as the launcher does (delete_model/remote_runner.py of GCPC 2.22)."""
        options = launcher_options(attempt.arguments())
        wanted = str(launcher_payload(options["payload"], attempt).get("model", ""))
        match = _NAME.fullmatch(wanted)
        if not match:
            text = f"Invalid model name: {wanted}. Expect: projects/[project_id]/locations/[location]/models/[model_id]"
            raise TaskFailed(text, is_retryable=False)
        versions = ModelVersions.of(attempt.context.work_dir, match["id"], attempt.context.processes.check_stopped)
        numbers = versions.numbers
        if not numbers:
            raise TaskFailed(f"NOT_FOUND: the model {match['id']!r} is not in {versions.folder.parent}")
        try:
            left = versions.delete()
        except (ValueError, OSError) as error:
            raise TaskFailed(f"cannot delete the model {match['id']!r}: {error}", is_retryable=False) from None
        operation = f"{match['name']}/operations/{uuid4().int >> 66}"
        write_resource(attempt, options, "VertexLro", operation, match["location"])
        logs.add(attempt.log, f"deleted the model {match['id']!r} with version {', '.join(numbers)}")
        if left:
            attempt.context.warnings.add(
                f"{attempt.label}: {versions.folder} stays, because the registry did not create {', '.join(left)}"
            )
        attempt.report_exit(0)
