"""Whether a record has the types that the console relies on; a user may have edited it, or a disk has damaged it.

A shape is a type, a set of texts, a list `[items]`, a list of fixed length `(first, second)`, an object
`{str: values}`, or an object with fields: `name!` must be there, and `name?` may be None.
"""

from pathlib import Path
from types import UnionType
from typing import Any

from localvertex.state import record
from localvertex.state.task import State

_NUMBER, _OPTIONAL_NUMBER = int | float, int | float | None
"""The first one is finite; a measured value may be NaN."""

_LARGEST = 1e15
"""Of times, sizes and counts."""

_TEXT, _INTEGER = str | None, int | None

_MARKS = [(_NUMBER, str)]

_SPAN = {"start!": _NUMBER, "end": _OPTIONAL_NUMBER, "exit_code": _INTEGER}

_REPLICA = {
    "name!": str,
    "is_running!": bool,
    "num_starts!": int,
    "exit_code!": _INTEGER,
    "step": _INTEGER,
    "num_steps": _INTEGER,
    **dict.fromkeys(("loss", "accuracy", "seconds_left"), _OPTIONAL_NUMBER),
    "spans": [_SPAN],
    "event_log?": {"path!": str, "offset!": int},
}

_GOODPUT = {
    "total_seconds": _NUMBER,
    "seconds": {str: _NUMBER},
    "timeline": {str: [(str, _NUMBER, _NUMBER)]},
    "marks": _MARKS,
    **dict.fromkeys(("fraction", "best_seconds_between_saves", "mean_seconds_between_saves"), _OPTIONAL_NUMBER),
}

_CUSTOM_JOB = {
    "state!": str,
    "replicas!": [_REPLICA],
    "num_restarts": _INTEGER,
    "num_preemptions": _INTEGER,
    "marks": _MARKS,
    "goodput?": _GOODPUT,
}

_ARTIFACT = {"type!": {"schemaTitle": str}, "uri": str, "name": str, "metadata": dict}

_VALUES = {"parameters!": dict, "artifacts!": {str: [_ARTIFACT]}}

_TASK = {
    **dict.fromkeys(("path!", "title!", "display_name!", "kind!"), str),
    **dict.fromkeys(("start_time!", "end_time!", "error", "note", "log"), _TEXT),
    "state!": frozenset(State),
    "seconds!": _NUMBER,
    "attempts": _INTEGER,
    "exit_code": _INTEGER,
    "inputs!": _VALUES,
    "outputs!": _VALUES,
    "custom_job?": _CUSTOM_JOB,
}

_RUN = {
    **dict.fromkeys(("start_time", "end_time", "error", "failed_task", "gcs_root", "region", "sha256"), _TEXT),
    "parameters": dict,
    "outputs": _VALUES,
    "input_artifacts": {str: [_ARTIFACT]},
    "metrics!": [{"task!": str, "artifact!": str, "name!": str}],
    "models!": [{"uri!": str, "resource_name": _TEXT}],
    **{name: [str] for name in ("resume_times", "resume_options", "warnings", "unused_faults")},
    "tasks!": [_TASK],
}


def read(run_dir: Path) -> dict[str, Any]:
    """Read the record of a run.

    Raises:
        OSError: There is no readable record.
        ValueError: The record is damaged.
    """
    content = record.read(run_dir)
    _check(content, _RUN, "")
    return content


def is_custom_job(status: Any) -> bool:
    """Return whether a value is the status of a custom job."""
    try:
        _check(status, _CUSTOM_JOB, "")
    except ValueError:
        return False
    return True


def _check(value: Any, shape: Any, place: str) -> None:
    """Check a value.

    Raises:
        ValueError: It does not have the shape.
    """
    is_type = isinstance(shape, type | UnionType)
    expected: Any = (
        shape if is_type else dict if isinstance(shape, dict) else str if isinstance(shape, frozenset) else list
    )
    is_other = isinstance(value, bool) and expected is not bool
    if is_other or not isinstance(value, expected):
        raise ValueError(f"{place or 'the record'} has the wrong type: {type(value).__name__}")
    if isinstance(shape, frozenset) and value not in shape:
        raise ValueError(f"{place}: unknown value {value[:40]!r}")
    if (expected == _NUMBER or isinstance(value, int)) and not -_LARGEST < value < _LARGEST:
        raise ValueError(f"{place}: expected a number from -1e15 to 1e15, found {str(value)[:40]}")
    for name, inner, part in () if is_type else _parts(value, shape, place):
        _check(part, inner, name)


def _parts(value: Any, shape: Any, place: str) -> list[tuple[str, Any, Any]]:
    """Return the place, the shape and the value of each part.

    Raises:
        ValueError: A part is missing.
    """
    if isinstance(shape, list | tuple):
        if isinstance(shape, tuple) and len(value) != len(shape):
            raise ValueError(f"{place} has {len(value)} items instead of {len(shape)}")
        return [(f"{place}[{index}]", shape[index % len(shape)], each) for index, each in enumerate(value)]
    if isinstance(shape, frozenset):
        return []
    if str in shape:
        return [(f"{place}.{name}"[:200], shape[str], each) for name, each in value.items()]
    found = []
    for key, inner in shape.items():
        name = key.rstrip("!?")
        if key.endswith("!") and name not in value:
            raise ValueError(f"{f'{place}.{name}'.lstrip('.')} is missing")
        if name in value and not (key.endswith("?") and value[name] is None):
            found.append((f"{place}.{name}".lstrip("."), inner, value[name]))
    return found
