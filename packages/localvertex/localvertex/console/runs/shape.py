"""Whether a record has the types that the console relies on: a user may have edited it, or a disk damaged it.

A shape is a type, a set of texts, a list `[items]`, a list of fixed length `(first, second)`, an object
`{str: values}`, or an object with fields: `name!` must be there, and `name?` may be None.
"""

from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Any

from localvertex.jobs.goodput.progress import LARGEST
from localvertex.store import record
from localvertex.store.task import State

_NUMBER, _OPTIONAL_NUMBER = int | float, int | float | None
"""The first one is finite; a measured value may be NaN."""

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
    **dict.fromkeys(("num_steps", "num_lost_steps", "num_failures", "num_trials"), int),
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
    "idle_seconds": _NUMBER,
    "parameters": dict,
    "outputs": _VALUES,
    "input_artifacts": {str: [_ARTIFACT]},
    "metrics!": [{"task!": str, "artifact!": str, "name!": str}],
    "models!": [{"uri!": str, "resource_name": _TEXT}],
    **{name: [str] for name in ("resume_times", "resume_options", "warnings", "unused_faults")},
    "tasks!": [_TASK],
}


class _Wrong(Exception):
    """A value does not have its shape; `{place}` in the text becomes its path.

    The path is put together only here, because a large record has millions of values.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.path: list[str | int] = []
        """Names and indices that lead to the value, the innermost first."""

    def __str__(self) -> str:
        steps = [f"[{each}]" if isinstance(each, int) else f".{each}" for each in reversed(self.path)]
        return str(self.args[0]).replace("{place}", "".join(steps).lstrip(".")[:200] or "the record")


def read(run_dir: Path) -> dict[str, Any]:
    """Read the record of a run.

    Raises:
        OSError: There is no readable record.
        ValueError: The record is damaged.
    """
    content = record.read(run_dir)
    try:
        _check(content, _RUN)
    except _Wrong as wrong:
        raise ValueError(str(wrong)) from None
    return content


def is_custom_job(status: Any) -> bool:
    """Return whether a value is the status of a custom job."""
    try:
        _check(status, _CUSTOM_JOB)
    except _Wrong:
        return False
    return True


def _check(value: Any, shape: Any) -> None:
    """Check a value.

    Raises:
        _Wrong: It does not have the shape.
    """
    expected = _type(shape)
    is_other = isinstance(value, bool) and expected is not bool
    if is_other or not isinstance(value, expected):
        raise _Wrong(f"{{place}} has the wrong type: {type(value).__name__}")
    if isinstance(shape, frozenset) and value not in shape:
        raise _Wrong(f"{{place}}: unknown value {value[:40]!r}")
    if (expected is _NUMBER or isinstance(value, int)) and not -LARGEST < value < LARGEST:
        raise _Wrong(f"{{place}}: expected a number from -{LARGEST:g} to {LARGEST:g}, found {str(value)[:40]}")
    if not isinstance(value, list | dict):
        return
    for key, inner, part in _parts(value, shape):
        if type(part) is inner is not int:
            # The most frequent case, without a call.
            continue
        try:
            _check(part, inner)
        except _Wrong as wrong:
            wrong.path.append(key)
            raise


def _type(shape: Any) -> Any:
    if isinstance(shape, type | UnionType):
        return shape
    return dict if isinstance(shape, dict) else str if isinstance(shape, frozenset) else list


def _parts(value: Any, shape: Any) -> Iterator[tuple[str | int, Any, Any]]:
    """Yield the name or the index, the shape and the value of each part.

    Raises:
        _Wrong: A part is missing.
    """
    if isinstance(shape, list):
        yield from ((index, shape[0], each) for index, each in enumerate(value))
    elif isinstance(shape, tuple):
        if len(value) != len(shape):
            raise _Wrong(f"{{place}} has {len(value)} items instead of {len(shape)}")
        yield from zip(range(len(value)), shape, value, strict=True)
    elif isinstance(shape, dict) and str in shape:
        yield from ((name, shape[str], each) for name, each in value.items())
    elif isinstance(shape, dict):
        for key, inner in shape.items():
            name = key.rstrip("!?")
            if name in value and not (key.endswith("?") and value[name] is None):
                yield name, inner, value[name]
            elif key.endswith("!") and name not in value:
                wrong = _Wrong("{place} is missing")
                wrong.path.append(name)
                raise wrong
