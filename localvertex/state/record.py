"""`run.json`: the record of a run, replaced as a whole at every change (format in docs/localvertex.md)."""

import fcntl
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from localvertex.state.task import State, Task, Values
from userinput import files

FILE, LOCK = "run.json", ".lock"

PRIVATE = ".localvertex"
"""Folder of the work directory for caches and environments."""

FORMAT = 1

_FIELDS: dict[str, type | tuple[type, ...]] = {
    "run_id": str,
    "state": str,
    "create_time": str,
    "pipeline_name": str,
    "work_dir": str,
    "seconds": (int, float),
    "tasks": list,
    "metrics": list,
    "models": list,
}
"""Fields that every record has and the commands rely on."""


def timestamp(seconds: float | None) -> str | None:
    """Format seconds since the epoch as RFC 3339 in UTC."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def now() -> str:
    """Return the current time in the format of the record."""
    return str(timestamp(time.time()))


def seconds_of(text: str | None) -> float | None:
    """Parse a time of the record into seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp() if text else None


def _of_task(task: Task, run_dir: Path) -> dict[str, Any]:
    """Return the entry of one task; `log` is relative to the run's folder."""
    if task.final_entry is not None:
        return task.final_entry
    kind = "step" if task.is_step else "loop" if task.is_loop else "iteration" if task.iteration is not None else "dag"
    entry = {
        "name": task.spec.name,
        "display_name": task.spec.display_name,
        "path": task.label,
        "title": task.title,
        "kind": kind,
        "state": str(task.state),
        "seconds": round(task.seconds, 3),
        "start_time": timestamp(task.started_at),
        "end_time": timestamp(task.ended_at),
        "attempts": task.attempts,
        "exit_code": task.exit_code,
        "cache_hit": task.state is State.SKIPPED,
        "restored": task.is_restored,
        "log": str(task.log.relative_to(run_dir)) if task.log is not None and task.log.exists() else None,
        "custom_job": task.custom_job,
        "error": task.error or None,
        "note": task.note or None,
        "inputs": of_values(task.inputs),
        "outputs": of_values(task.outputs),
    }
    if task.state.is_final:
        task.final_entry = entry
    return entry


def of_values(values: Values) -> dict[str, Any]:
    """Return parameters and artifacts, artifacts with type, URI and metadata."""
    return {"parameters": values.parameters, "artifacts": values.artifacts}


def summary(root: Task, run_dir: Path) -> dict[str, Any]:
    """Return the part of the record that changes: state, times, tasks, results."""
    tasks = [_of_task(task, run_dir) for task in root.walk()[1:]]
    return {
        "state": str(root.state),
        "start_time": timestamp(root.started_at),
        "end_time": timestamp(root.ended_at),
        "seconds": round(root.seconds, 3),
        "outputs": of_values(root.outputs),
        "metrics": metrics(tasks),
        "models": models(tasks),
        "tasks": tasks,
    }


def _artifacts_of_type(tasks: list[dict[str, Any]], *titles: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the output artifacts of steps with these schema titles, as task path, output name and artifact."""
    return [
        (task["path"], name, artifact)
        for task in tasks
        if task["kind"] == "step"
        for name, artifacts in task["outputs"]["artifacts"].items()
        for artifact in artifacts
        if artifact["type"].get("schemaTitle") in titles
    ]


def metrics(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the scalar metrics of all system.Metrics artifacts."""
    return [
        {"task": path, "artifact": name, "name": key, "value": value}
        for path, name, artifact in _artifacts_of_type(tasks, "system.Metrics")
        for key, value in artifact.get("metadata", {}).items()
        if isinstance(value, int | float | str)
    ]


def models(tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the models that steps wrote, and registered ones with their resource name."""
    found = _artifacts_of_type(tasks, "system.Model", "google.VertexModel")
    return [
        {
            "task": path,
            "artifact": name,
            "uri": artifact["uri"],
            "resource_name": artifact["metadata"].get("resourceName"),
        }
        for path, name, artifact in found
    ]


def write(run_dir: Path, content: dict[str, Any], *, is_final: bool = False) -> None:
    """Replace run.json by one rename; indent it only at the end: the plain form is written twenty times as fast."""
    files.write_text(run_dir / FILE, json.dumps(content, indent=1 if is_final else None, default=str))


def read(run_dir: Path) -> dict[str, Any]:
    """Read the record of a run; one in state RUNNING that no process runs any more is FAILED.

    Raises:
        OSError: There is no readable record.
        ValueError: The record is damaged.
    """
    content = json.loads((run_dir / FILE).read_text())
    if not isinstance(content, dict):
        raise ValueError(f"expected an object, found {type(content).__name__}")
    for name, kind in _FIELDS.items():
        if not isinstance(content.get(name), kind):
            raise ValueError(f"the field {name!r} is missing or of the wrong type")
    if content["state"] not in set(State):
        raise ValueError(f"unknown state {content['state']!r}")
    if content["state"] in (State.RUNNING, State.PENDING) and not is_running(run_dir):
        content |= {"state": str(State.FAILED), "error": content.get("error") or "the process that ran it was killed"}
    return content


def is_running(run_dir: Path) -> bool:
    """Return whether a process is running this run."""
    try:
        with (run_dir / LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
