"""The record of a run: `run.json`, a snapshot that is replaced as a whole, with the changes of the journal since then.

Formats: docs/localvertex.md; of the journal, docs/journal.md.
"""

import fcntl
import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput import atomic_write
from localvertex._base.userinput.shape import NUMBER, check
from localvertex.store import journal
from localvertex.store.task import State, Task, Values

FILE, PAGE, LOCK = "run.json", "run.html", ".lock"

COPIES = ".given"
"""The folder in a run's folder with its copies of the user's files."""

PRIVATE = ".localvertex"
"""Folder of the work folder for caches and environments."""

FORMAT = 1

MAX_BYTES = 2 << 30
"""Limit of a snapshot: four times a run with 100,000 tasks, and less than the memory of a laptop."""

UNRESTORED = "unrestored"
"""The field with the finished steps that a resumed run has not reached again."""

_FIELDS: JsonObject = {
    **dict.fromkeys(("run_id!", "create_time!", "update_time!", "pipeline_name!", "work_dir!"), str),
    **dict.fromkeys(("seconds!", "idle_seconds!"), NUMBER),
    **dict.fromkeys(("resume_times!", "resume_options!", "tasks!", "metrics!", "models!"), list),
    "state!": frozenset(State),
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


def new_number() -> str:
    """Return a random id as the service gives them: a number of up to 19 digits."""
    return str(uuid4().int >> 66)


def seconds_of(text: str | None) -> float | None:
    """Parse a time of the record into seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp() if text else None


def of_task(task: Task, run_dir: Path) -> JsonObject:
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
        "memory": task.memory,
        "cache_hit": task.state is State.SKIPPED,
        "restored": task.is_restored,
        "num_resumes": task.num_resumes if task.is_step else None,
        "log": str(task.log.relative_to(run_dir)) if task.log is not None and task.log.exists() else None,
        "custom_job": task.custom_job,
        "error": task.error or None,
        "note": task.note or None,
        "inputs": of_values(_inputs(task)),
        "outputs": of_values(task.outputs),
    }
    if task.state.is_final:
        task.final_entry = entry
    return entry


def _inputs(task: Task) -> Values:
    """Return the inputs of a task, of an iteration without the list of all items, which would be in each of them."""
    iterator = task.spec.iterator if task.iteration is not None else None
    items = iterator.input_parameter if iterator else None
    parameters = {name: value for name, value in task.inputs.parameters.items() if name != items}
    return Values(parameters=parameters, artifacts=task.inputs.artifacts)


def of_values(values: Values) -> JsonObject:
    """Return parameters and artifacts, artifacts with type, URI and metadata."""
    return {"parameters": values.parameters, "artifacts": values.artifacts}


def of_root(root: Task) -> JsonObject:
    """Return the fields of the run itself that change: state, times, outputs."""
    return {
        "state": str(root.state),
        "start_time": timestamp(root.started_at),
        "end_time": timestamp(root.ended_at),
        "seconds": round(root.seconds, 3),
        "idle_seconds": round(root.idle_seconds, 3),
        "outputs": of_values(root.outputs),
    }


def idle_seconds(earlier: JsonObject) -> float:
    """Return the time in which a run that is resumed now was not running; 0 for a new run."""
    if not earlier:
        return 0.0
    # A killed process leaves no end, only its last change.
    ended_at = seconds_of(earlier["end_time"] or earlier["update_time"])
    new = max(time.time() - ended_at, 0.0) if ended_at and earlier["start_time"] else 0.0
    return float(earlier["idle_seconds"]) + new


def of_tasks(tasks: list[JsonObject]) -> JsonObject:
    """Return the entries of all tasks, and the results in them."""
    return {"metrics": metrics(tasks), "models": models(tasks), "tasks": tasks}


def _artifacts_of_type(tasks: list[JsonObject], *titles: str) -> list[tuple[str, str, JsonObject]]:
    """Return the output artifacts of steps with these schema titles, as task path, output name and artifact.

    The results of a run do not include what the user has given.
    """
    return [
        (task["path"], name, artifact)
        for task in tasks
        if task["kind"] == "step" and task["state"] != State.GIVEN
        for name, artifacts in task["outputs"]["artifacts"].items()
        for artifact in artifacts
        if artifact["type"].get("schemaTitle") in titles
    ]


def metrics(tasks: list[JsonObject]) -> list[JsonObject]:
    """Return the scalar metrics of all system.Metrics artifacts."""
    return [
        {"task": path, "artifact": name, "name": key, "value": value}
        for path, name, artifact in _artifacts_of_type(tasks, "system.Metrics")
        for key, value in artifact.get("metadata", {}).items()
        if isinstance(value, int | float | str)
    ]


def models(tasks: list[JsonObject]) -> list[JsonObject]:
    """Return the models that steps wrote, and registered ones with their resource name.

    The parent of a version, an artifact of an upload, is not a model of its own; without a name it is ignored.
    """
    found = _artifacts_of_type(tasks, "system.Model", "google.VertexModel")
    every = [
        {
            "task": path,
            "artifact": output,
            "uri": artifact["uri"],
            "resource_name": name if isinstance(name := artifact["metadata"].get("resourceName"), str) else None,
        }
        for path, output, artifact in found
    ]
    parents = {str(each["resource_name"]).partition("@")[0] for each in every if "@" in str(each["resource_name"])}
    return [each for each in every if each["resource_name"] not in {"", *parents}]


def write(run_dir: Path, content: JsonObject, *, position: journal.Position | None = None) -> None:
    """Replace run.json by one rename.

    Args:
        run_dir: The folder of the run.
        content: The record.
        position: The end of what it contains of the journal; None: it is complete, and there is no journal any more.
    """
    # Indented only at the end: the plain form is written twenty times as fast.
    indent = None if position else 1
    named = content | ({"journal": position.as_json()} if position else {})
    atomic_write.write_text(run_dir / FILE, json.dumps(named, indent=indent, default=str))


def read(run_dir: Path) -> JsonObject:
    """Read the record of a run; one in state RUNNING that no process runs any more is FAILED.

    Raises:
        OSError: There is no readable record.
        ValueError: The record is damaged.
    """
    content = _present(run_dir)
    if not State(content["state"]).is_final and not is_running(run_dir):
        # It may have ended after it was read.
        content = _present(run_dir)
    if not State(content["state"]).is_final and not is_running(run_dir):
        content |= {"state": str(State.FAILED), "error": content.get("error") or "the process that ran it was killed"}
    return content


def _text(path: Path) -> str:
    """Return the content of a snapshot.

    Raises:
        ValueError: It is too large for the memory of a laptop.
    """
    with path.open() as file:
        if os.fstat(file.fileno()).st_size > MAX_BYTES:
            raise ValueError("it is larger than 2 GiB")
        return file.read()


def _present(run_dir: Path) -> JsonObject:
    """Return the snapshot with the changes since then."""
    text = ""
    while True:
        last, text = text, _text(run_dir / FILE)
        try:
            content: JsonObject = json.loads(text)
            check(content, _FIELDS)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        value = content.pop("journal", None)
        if value is None:
            return content
        position = journal.Position.of_snapshot(value)
        try:
            changes = journal.read(run_dir, position)
        except FileNotFoundError:
            # When the run ends or is resumed, a new snapshot replaces this journal.
            if text == last:
                raise ValueError(f"{position.file} is missing") from None
            continue
        try:
            content = _replay(content, changes) if changes else content
            check(content, _FIELDS)
            return content
        except (LookupError, TypeError, AttributeError, ArithmeticError) as error:
            raise ValueError(f"{type(error).__name__}: {error}") from None


def _replay(content: JsonObject, changes: list[journal.Change]) -> JsonObject:
    """Return a snapshot with these changes applied, in their order."""
    entries = {entry["path"]: entry for entry in content["tasks"]}
    waiting = {entry["path"]: entry for entry in content.get(UNRESTORED, [])}
    for change in changes:
        content |= change.get("run", {})
        if entry := change.get("task"):
            entries[entry["path"]] = entry
            if entry["start_time"]:
                waiting.pop(entry["path"], None)
    now = content["update_time"] = changes[-1]["time"]
    tasks = _in_order(entries)
    for each in [content, *tasks]:
        if not State(each["state"]).is_final and each["start_time"]:
            since = (seconds_of(each["start_time"]) or 0.0) + each.get("idle_seconds", 0.0)
            each["seconds"] = round(max((seconds_of(now) or 0.0) - since, 0.0), 3)
    return content | of_tasks(tasks) | {UNRESTORED: [*waiting.values()]}


def _in_order(entries: dict[str, JsonObject]) -> list[JsonObject]:
    """Return the entries of all tasks, parents before children, siblings in the order in which they were added."""
    children: dict[str, list[JsonObject]] = {}
    for path, entry in entries.items():
        children.setdefault(path.rpartition("/")[0], []).append(entry)
    found, left = [], children.get("", [])[::-1]
    while left:
        found.append(left.pop())
        left += children.get(found[-1]["path"], [])[::-1]
    return found


def is_running(run_dir: Path) -> bool:
    """Return whether a process is running this run."""
    try:
        # For reading: the file system may be read-only by now.
        with (run_dir / LOCK).open() as lock:
            # Shared, so that two that look at the same time do not see each other.
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
