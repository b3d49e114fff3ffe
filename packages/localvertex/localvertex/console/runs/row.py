"""The row of a run in the lists: each field is one entry here, with its value, its type and its column.

The page shows a column that it does not know as the value alone, and the scripts' type of a row is made from the
entries. So a new column is a new entry.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

Row = dict[str, Any]

DAMAGED = "DAMAGED"
"""The state of a run whose record cannot be read."""

_MAX_ERROR = 500
"""Characters of an error that a row has; the run's page has all of them."""

_OPTIONAL = "string | null"


@dataclass(frozen=True, kw_only=True)
class ListedRun:
    """A run as its row sees it; the defaults are those of a row without a value."""

    id: str = ""
    job: Mapping[str, Any] = field(default_factory=dict)
    """What the server stored of its job; empty if it did not start the run."""
    content: Mapping[str, Any] = field(default_factory=dict)
    """Its record; empty if it cannot be read."""
    state: str = ""
    error: str | None = None
    outputs: Mapping[str, Any] = field(default_factory=dict)
    """Its metrics and parameters, in a size that fits a list."""

    @property
    def row(self) -> Row:
        """The row. Rows have several readers, so none may change one."""
        return {each.name: each.of(self) for each in FIELDS}


@dataclass(frozen=True, kw_only=True)
class Field:
    """A field of a row."""

    name: str
    of: Callable[[ListedRun], Any]
    type: str = "string"
    """In the scripts."""
    title: str = ""
    """The heading of its column; empty: it has none."""


FIELDS = (
    Field(name="id", of=lambda run: run.id),
    Field(name="name", title="Run", of=lambda run: run.job.get("displayName") or run.id),
    Field(name="state", title="State", of=lambda run: run.state),
    Field(name="pipeline", title="Pipeline", of=lambda run: run.content.get("pipeline_name", "")),
    Field(name="create_time", title="Created", type=_OPTIONAL, of=lambda run: run.content.get("create_time")),
    Field(name="start_time", type=_OPTIONAL, of=lambda run: run.content.get("start_time")),
    Field(name="end_time", type=_OPTIONAL, of=lambda run: run.content.get("end_time")),
    Field(name="seconds", title="Duration", type="number | null", of=lambda run: run.content.get("seconds")),
    Field(name="idle_seconds", type="number", of=lambda run: run.content.get("idle_seconds", 0.0)),
    Field(name="error", type=_OPTIONAL, of=lambda run: run.error[:_MAX_ERROR] if run.error else None),
    Field(name="resource", type=_OPTIONAL, of=lambda run: run.job.get("name")),
    Field(name="schedule", type=_OPTIONAL, of=lambda run: _id(run.job.get("scheduleName")) or None),
    Field(name="is_own", type="boolean", of=lambda run: bool(run.job)),
    Field(name="labels", type="Record<string, string>", of=lambda run: run.job.get("labels") or {}),
    Field(name="metrics", type="Record<string, number>", of=lambda run: numbers(run.outputs.get("metrics", {}))),
    Field(name="parameters", type="Record<string, any>", of=lambda run: run.outputs.get("parameters", {})),
)

COLUMNS = [{"by": each.name, "title": each.title} for each in FIELDS if each.title]


def is_number(value: Any) -> bool:
    """Return whether a value can be ordered with others, and drawn."""
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the values that are numbers."""
    return {name: value for name, value in values.items() if is_number(value)}


def _id(name: Any) -> str:
    return str(name or "").rpartition("/")[2]


EMPTY = ListedRun().row
