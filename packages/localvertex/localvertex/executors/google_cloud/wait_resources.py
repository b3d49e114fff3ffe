"""WaitGcpResourcesOp: wait for a resource that a local step has created."""

from pathlib import Path
from typing import ClassVar

from localvertex.errors import TaskFailed
from localvertex.executors.attempt import Attempt
from localvertex.executors.google_cloud.resources import single_resource
from localvertex.executors.launcher import LauncherExecutor, launcher_options
from localvertex.processes import logs
from localvertex.store import record
from localvertex.store.steps import folders as step_folders
from localvertex.store.task import State

_MODULE = "google_cloud_pipeline_components.container.v1.wait_gcp_resources.launcher"

_POLL_SECONDS = 0.2


class WaitResourcesExecutor(LauncherExecutor):
    """Returns when the step that created a resource has ended; at once for a step of this run."""

    name: ClassVar[str] = "wait for resources"
    modules = frozenset({_MODULE})

    def execute(self, attempt: Attempt) -> None:
        """Wait, and pass the resources on as the launcher does (wait_gcp_resources/remote_runner.py of GCPC 2.22)."""
        options = launcher_options(attempt.arguments())
        text = attempt.resolve(options["payload"])
        resource = single_resource(text)
        kind, uri = resource["resourceType"], resource["resourceUri"]
        folders = step_folders.with_resource(attempt.context.work_dir, uri)
        if not folders:
            raise TaskFailed(
                f"{kind} {uri} was not created by a run in {attempt.context.work_dir}; a local run does not "
                "query Google Cloud",
                is_retryable=False,
            )
        attempt.context.warnings.add(
            f"{attempt.label}: on Vertex AI, WaitGcpResourcesOp waits only for a DataflowJob and fails for a {kind}"
        )
        _wait_for(folders[0], attempt)
        Path(attempt.resolve(options["gcp_resources"])).write_text(text)
        logs.add(attempt.log, f"{kind} {uri} has ended")
        attempt.report_exit(0)


def _wait_for(folder: Path, attempt: Attempt) -> None:
    """Wait until the step in a folder has ended; a step of this run has, because its output is known.

    Raises:
        TaskFailed: It has failed.
        Cancelled: The run was stopped.
    """
    context = attempt.context
    if folder.is_relative_to(context.run_dir):
        return
    run_dir = context.work_dir / folder.relative_to(context.work_dir).parts[0]
    while (state := _state_of(folder, run_dir)) is None:
        context.processes.stopped.wait(_POLL_SECONDS)
        context.processes.check_stopped()
    if not state.has_outputs:
        raise TaskFailed(f"the step in {folder} ended in state {state}", is_retryable=False)


def _state_of(folder: Path, run_dir: Path) -> State | None:
    """Return the final state of a step of another run; None while it runs."""
    is_running = record.is_running(run_dir)
    try:
        tasks = record.read(run_dir)["tasks"]
    except (OSError, ValueError):
        tasks = []
    found = [State(each["state"]) for each in tasks if each["log"] and (run_dir / each["log"]).parent == folder]
    if found and found[0].is_final:
        return found[0]
    return None if is_running else State.FAILED
