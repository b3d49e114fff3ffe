"""A failed step as a sentence: which task failed and why, and the end of the log that explains it.

The reason is written where the step fails: `TaskFailed` in the executors, or `logs.failure_text` for a process.
"""

import re
from pathlib import Path

from localvertex._base.json_object import JsonObject
from localvertex.processes import logs
from localvertex.store.steps import logs as step_logs
from localvertex.store.task import State, Task

_NUM_LOG_LINES = 20

_ROUTINE = re.compile(r"\[KFP Executor [^\]]* INFO\]: ")
"""Line that kfp reports for every step; it explains no failure."""

WRONG_INPUT = 2
"""The exit code of programs whose input is wrong: running them again with the same input fails again."""

_NOT_STARTED = (126, 127)
"""Exit codes of a shell whose command is not a program, or was not found."""

_NOT_HERE = re.compile(
    r"\b(?:ModuleNotFoundError|ImportError|MethodNotImplemented|DefaultCredentialsError)\b"
    "|^installing the packages failed|: Please install the '"
)
"""Messages of a step that needs something this machine lacks: modules, or Google Cloud."""


def of_run(root: Task) -> dict[str, str | None]:
    """Return the fields `failed_task` and `error` of the record: the first failed step, else the first failed dag."""
    failed = [task for task in root.walk()[1:] if task.state is State.FAILED]
    first = next((task for task in failed if task.is_step), failed[0] if failed else None)
    return {"failed_task": first.label if first else None, "error": sentence(first) if first else root.error or None}


def sentence(task: Task) -> str:
    """Return the sentence about a failed task."""
    return f"{task.title}: {task.error}"


def cannot_run_here(task: JsonObject) -> bool:
    """Return whether the entry of a failed step says that this machine lacks what it needs."""
    return task["exit_code"] in _NOT_STARTED or bool(_NOT_HERE.search(task["error"] or ""))


def log_of(content: JsonObject, run_dir: Path) -> tuple[Path | None, list[str]]:
    """Return the log of a record's failed task and its last lines; None and no lines when there is no log.

    The line that the error quotes is left out, and so are those that kfp writes in every step.
    """
    task = next((each for each in content["tasks"] if each["path"] == content.get("failed_task")), None)
    if task is None or not task["log"]:
        return None, []
    log = run_dir / task["log"]
    # The log of a custom job only names its replica; the replica's own log has the error.
    failed = log.parent / f"{(task.get('custom_job') or {}).get('failed_replica')}.log"
    replicas = [each for each in step_logs.of_replicas(log.parent) if each.stat().st_size]
    first = [each for each in replicas if each.parent == log.parent]
    log = failed if failed in replicas else [*first, log][0]
    if not log.is_file():
        return None, []
    lines = [line for line in logs.tail(log, 2 * _NUM_LOG_LINES) if not _ROUTINE.match(line)]
    return log, _without_quoted(lines[-_NUM_LOG_LINES:], task.get("error") or "")


def _without_quoted(lines: list[str], error: str) -> list[str]:
    """Return the lines without the last one that is the end of the error."""
    quoted = [number for number, line in enumerate(lines) if line.strip() and error.endswith(logs.shortened(line))]
    return [line for number, line in enumerate(lines) if number != max(quoted, default=None)]
