"""Whether a record has the types that the console relies on: a user may have edited it, or a disk damaged it.

The shapes use `localvertex._base.userinput.shape`.
"""

from pathlib import Path
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.shape import NUMBER, OPTIONAL_NUMBER, Wrong, check
from localvertex.store import record
from localvertex.store.task import State

_TEXT, _INTEGER = str | None, int | None

EVENT = {"time!": NUMBER, **dict.fromkeys(("kind!", "text!", "replica!", "action!", "phase!"), str)}

MEMORY = {
    "peak_bytes!": int,
    **dict.fromkeys(("severity!", "text!"), str),
    "machine_type": _TEXT,
    "machine_bytes": _INTEGER,
}

SPAN = {"start!": NUMBER, "end": OPTIONAL_NUMBER, "exit_code": _INTEGER}

REPLICA = {
    "name!": str,
    "is_running!": bool,
    "num_starts!": int,
    "exit_code!": _INTEGER,
    "step": _INTEGER,
    "num_steps": _INTEGER,
    **dict.fromkeys(("loss", "accuracy", "seconds_left"), OPTIONAL_NUMBER),
    "memory?": MEMORY,
    "spans": [SPAN],
    "event_log?": {"path!": str, "offset!": int},
}

GOODPUT = {
    "total_seconds": NUMBER,
    **dict.fromkeys(("num_steps", "num_lost_steps", "num_failures", "num_trials"), int),
    "seconds": {str: NUMBER},
    "timeline": {str: [(str, NUMBER, NUMBER)]},
    "fraction": OPTIONAL_NUMBER,
}

CUSTOM_JOB = {
    "state!": str,
    "replicas!": [REPLICA],
    "num_restarts": _INTEGER,
    "num_preemptions": _INTEGER,
    **dict.fromkeys(("stalled", "failed_replica"), str),
    "events": [EVENT],
    "goodput?": GOODPUT,
}

ARTIFACT = {"type!": {"schemaTitle": str}, "uri": str, "name": str, "metadata": dict}

VALUES = {"parameters!": dict, "artifacts!": {str: [ARTIFACT]}}

TASK = {
    **dict.fromkeys(("path!", "title!", "display_name!", "kind!"), str),
    **dict.fromkeys(("start_time!", "end_time!", "error", "note", "log"), _TEXT),
    "state!": frozenset(State),
    "seconds!": NUMBER,
    "attempts": _INTEGER,
    "exit_code": _INTEGER,
    "memory?": MEMORY,
    "inputs!": VALUES,
    "outputs!": VALUES,
    "custom_job?": CUSTOM_JOB,
}

RUN = {
    **dict.fromkeys(("start_time", "end_time", "error", "failed_task", "gcs_root", "region", "sha256"), _TEXT),
    "idle_seconds": NUMBER,
    "parameters": dict,
    "outputs": VALUES,
    "input_artifacts": {str: [ARTIFACT]},
    "metrics!": [{"task!": str, "artifact!": str, "name!": str}],
    "models!": [{"uri!": str, "resource_name": _TEXT}],
    **{name: [str] for name in ("resume_times", "resume_options", "warnings", "unused_faults")},
    "outcome?": dict.fromkeys(("kind!", "sentence!", "earlier_run!"), str),
    "tasks!": [TASK],
}


def read(run_dir: Path) -> JsonObject:
    """Read the record of a run.

    Raises:
        OSError: There is no readable record.
        ValueError: The record is damaged.
    """
    content = record.read(run_dir)
    check(content, RUN)
    return content


def is_custom_job(status: Any) -> bool:
    """Return whether a value is the status of a custom job."""
    try:
        check(status, CUSTOM_JOB)
    except Wrong:
        return False
    return True
