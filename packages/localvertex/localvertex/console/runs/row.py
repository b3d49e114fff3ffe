"""The row of a run in the lists: each field is one entry here, with its value, its type and its column.

The page shows a column that it does not know as the value alone, and the scripts' type of a row is made from the
entries. So a new column is a new entry.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

from localvertex._base.json_object import JsonObject
from localvertex.console.runs import note

Row = JsonObject

DAMAGED = "DAMAGED"
"""The state of a run whose record cannot be read."""

_MAX_ERROR = 500
"""Characters of an error or a note that a row has; the run's page has all of them."""

_OPTIONAL = "string | null"


@dataclass(frozen=True, kw_only=True)
class ListedRun:
    """A run as its row sees it."""

    id: str
    job: Mapping[str, Any]
    """The stored fields of its job; empty if it did not start the run."""
    content: Mapping[str, Any]
    """Its record; empty if it cannot be read."""
    state: str
    error: str | None
    note: Mapping[str, str]
    outputs: Mapping[str, Any]
    """Its metrics and parameters, in a size that fits a list."""

    @property
    def row(self) -> Row:
        """The row. Rows have several readers, so none may change one."""
        return {each.name: each.of(self) if each.of else self.content.get(each.name) for each in FIELDS}


class Field(NamedTuple):
    """A field of a row."""

    name: str
    of: Callable[[ListedRun], Any] | None = None
    """None: the field of the record with this name."""
    type: str = "string"
    """Its type in the scripts."""
    title: str = ""
    """The heading of its column; empty: it has none."""


FIELDS = (
    Field("id", lambda run: run.id),
    Field("name", lambda run: run.note["name"] or run.job.get("displayName") or run.id, title="Run"),
    Field("state", lambda run: run.state, title="State"),
    Field("pipeline", lambda run: run.content.get("pipeline_name", ""), title="Pipeline"),
    Field("create_time", type=_OPTIONAL, title="Created"),
    Field("start_time", type=_OPTIONAL),
    Field("end_time", type=_OPTIONAL),
    Field("seconds", type="number | null", title="Duration"),
    Field("idle_seconds", lambda run: run.content.get("idle_seconds", 0.0), "number"),
    Field("error", lambda run: run.error and run.error[:_MAX_ERROR], _OPTIONAL),
    Field("note", lambda run: run.note["note"][:_MAX_ERROR] or None, _OPTIONAL),
    Field("resource", lambda run: run.job.get("name"), _OPTIONAL),
    Field("schedule", lambda run: str(run.job.get("scheduleName") or "").rpartition("/")[2] or None, _OPTIONAL),
    Field("is_own", lambda run: bool(run.job), "boolean"),
    Field("labels", lambda run: run.job.get("labels") or {}, "Record<string, string>"),
    Field("metrics", lambda run: numbers(run.outputs.get("metrics", {})), "Record<string, number>"),
    Field("parameters", lambda run: run.outputs.get("parameters", {}), "Record<string, any>"),
)

COLUMNS = [{"by": each.name, "title": each.title} for each in FIELDS if each.title]


def is_number(value: Any) -> bool:
    """Return whether a value can be ordered with others, and drawn."""
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def numbers(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the values that are numbers."""
    return {name: value for name, value in values.items() if is_number(value)}


EMPTY = ListedRun(id="", job={}, content={}, state="", error=None, note=note.EMPTY, outputs={}).row
