"""Whether a record has the types that the console relies on; somebody may have edited it, or a disk has damaged it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localvertex.custom_jobs.goodput.progress import LARGEST
from localvertex.state import record
from localvertex.state.task import State

_NUMBER, _OPTIONAL_NUMBER = (int, float), (int, float, type(None))
"""The first one is finite; a measured value may be NaN."""

_TEXT = (str, type(None))
_INTEGER = (int, type(None))


@dataclass(frozen=True, kw_only=True)
class _ListOf:
    """A list whose items have a shape."""

    items: Any


@dataclass(frozen=True, kw_only=True)
class _MapOf:
    """An object whose values have a shape."""

    values: Any


@dataclass(frozen=True, kw_only=True)
class _Optional:
    """None, or a value with a shape."""

    value: Any


@dataclass(frozen=True, kw_only=True)
class _Pair:
    """A list of exactly these shapes."""

    items: tuple[Any, ...]


_MARKS = _ListOf(items=_Pair(items=(_NUMBER, str)))

_SPAN = {"start!": _NUMBER, "end": _OPTIONAL_NUMBER, "exit_code": _INTEGER}

_REPLICA = {
    "name!": str,
    "is_running!": bool,
    "num_starts!": int,
    "exit_code!": _INTEGER,
    "step": _INTEGER,
    "num_steps": _INTEGER,
    "loss": _OPTIONAL_NUMBER,
    "accuracy": _OPTIONAL_NUMBER,
    "seconds_left": _OPTIONAL_NUMBER,
    "spans": _ListOf(items=_SPAN),
    "event_log": _Optional(value={"path!": str, "offset!": int}),
}

_GOODPUT = {
    "fraction": _OPTIONAL_NUMBER,
    "total_seconds": _NUMBER,
    "seconds": _MapOf(values=_NUMBER),
    "timeline": _MapOf(values=_ListOf(items=_Pair(items=(str, _NUMBER, _NUMBER)))),
    "marks": _MARKS,
    "best_seconds_between_saves": _OPTIONAL_NUMBER,
    "mean_seconds_between_saves": _OPTIONAL_NUMBER,
}

_CUSTOM_JOB = {
    "state!": str,
    "replicas!": _ListOf(items=_REPLICA),
    "num_restarts": _INTEGER,
    "num_preemptions": _INTEGER,
    "marks": _MARKS,
    "goodput": _Optional(value=_GOODPUT),
}

_ARTIFACT = {"type!": {"schemaTitle": str}, "uri": str, "name": str, "metadata": dict}

_VALUES = {"parameters!": dict, "artifacts!": _MapOf(values=_ListOf(items=_ARTIFACT))}

_TASK = {
    **dict.fromkeys(("path!", "title!", "display_name!", "kind!"), str),
    **dict.fromkeys(("start_time!", "end_time!", "error", "note", "log"), _TEXT),
    "state!": frozenset(State),
    "seconds!": _NUMBER,
    "attempts": _INTEGER,
    "exit_code": _INTEGER,
    "inputs!": _VALUES,
    "outputs!": _VALUES,
    "custom_job": _Optional(value=_CUSTOM_JOB),
}

_RUN = {
    **dict.fromkeys(("start_time", "end_time", "error", "failed_task", "gcs_root", "region", "sha256"), _TEXT),
    "idle_seconds": _NUMBER,
    "parameters": dict,
    "outputs": _VALUES,
    "input_artifacts": _MapOf(values=_ListOf(items=_ARTIFACT)),
    "metrics!": _ListOf(items={"task!": str, "artifact!": str, "name!": str}),
    "models!": _ListOf(items={"uri!": str, "resource_name": _TEXT}),
    **dict.fromkeys(("resume_times", "resume_options", "warnings", "unused_faults"), _ListOf(items=str)),
    "tasks!": _ListOf(items=_TASK),
}


class _Wrong(Exception):
    """A value without its shape; `{place}` of the text is where it is.

    The place is put together only here: a large record has millions of values.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.path: list[str | int] = []
        """Names and indexes that lead to the value, the innermost first."""

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
    if isinstance(shape, _Optional):
        if value is not None:
            _check(value, shape.value)
        return
    expected = _type(shape)
    is_number_only = isinstance(value, bool) and expected in (int, _NUMBER, _OPTIONAL_NUMBER, _INTEGER)
    if not isinstance(value, expected) or is_number_only:
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
    if isinstance(shape, type | tuple):
        return shape
    if isinstance(shape, frozenset):
        return str
    return list if isinstance(shape, _ListOf | _Pair) else dict


def _parts(value: Any, shape: Any) -> Iterator[tuple[str | int, Any, Any]]:
    """Yield the name or the index, the shape and the value of each part.

    Raises:
        _Wrong: A part is missing.
    """
    if isinstance(shape, _ListOf):
        yield from ((index, shape.items, each) for index, each in enumerate(value))
    elif isinstance(shape, _MapOf):
        yield from ((name, shape.values, each) for name, each in value.items())
    elif isinstance(shape, _Pair):
        if len(value) != len(shape.items):
            raise _Wrong(f"{{place}} has {len(value)} items instead of {len(shape.items)}")
        yield from zip(range(len(value)), shape.items, value, strict=True)
    elif isinstance(shape, dict):
        for key, inner in shape.items():
            name = key.rstrip("!")
            if name in value:
                yield name, inner, value[name]
            elif key.endswith("!"):
                wrong = _Wrong("{place} is missing")
                wrong.path.append(name)
                raise wrong
