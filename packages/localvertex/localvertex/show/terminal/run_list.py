"""The list of runs: a line per run, with fewer columns on a narrow terminal."""

import json
from collections import Counter, defaultdict
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.spelling import on_one_line
from localvertex.show import results
from localvertex.show.terminal.rows import align, num_fitting, wrap
from localvertex.show.terminal.summary import console, seconds_of, state_text
from localvertex.store import outcome
from localvertex.store.task import State

_COLUMNS = ("run", "state", "seconds", "result", "started", "pipeline")
_RIGHT = "seconds"
_DROPPED = ("pipeline", "started", "seconds")
"""The columns that a narrow terminal does not show, the first ones first."""

_MIN_WIDTH, _NARROW = 60, 120
"""Columns of a terminal that shows a run in one line, and below which it shows only short fields."""

_MAX_VALUE, _MAX_SHORT_VALUE = 60, 20
"""Maximum characters of a parameter."""


def show(records: list[JsonObject]) -> None:
    """Print the runs, each with its main metric, the parameters that differ between them, and why it failed."""
    out = console()
    width = out.size.width if out.is_terminal else None
    is_narrow = width is not None and width < _NARROW
    rows = [[*map(Text, _COLUMNS)], *(_cells(content, has_baseline=not is_narrow) for content in records)]
    parameters = ["", *_different_parameters(records, is_narrow=is_narrow)]
    errors = ["", *(_error(content) for content in records)]
    left, names, dropped = width and width - max(map(cell_len, parameters)), [*_COLUMNS], [*_DROPPED]
    while dropped and num_fitting(rows, width=left) < len(names):
        number = names.index(dropped.pop(0))
        names, rows = _without(names, number), [_without(row, number) for row in rows]
    right = names.index(_RIGHT) if _RIGHT in names else -1
    blocks = align(rows, width=width, right=right)
    for block, given, error in zip(blocks, parameters, errors, strict=True):
        if width is not None and width < _MIN_WIDTH:
            block += wrap([*given.split("  "), error], width=width)
        else:
            _complete(block[-1], given, error, width)
        for line in block:
            out.print(line)


def _without(cells: list[Any], number: int) -> list[Any]:
    return cells[:number] + cells[number + 1 :]


def _complete(line: Text, parameters: str, error: str, width: int | None) -> None:
    """Add the parameters and the error to the line of a run; where there is too little room, both get a part."""
    if width is not None and error:
        left = width - line.cell_len
        parameters = parameters if cell_len(parameters) <= left // 2 else f"{parameters[: max(left // 2 - 1, 0)]}…"
    line.append(parameters + error)
    if width is not None:
        line.truncate(width, overflow="ellipsis")


def _cells(content: JsonObject, *, has_baseline: bool) -> list[Text]:
    """Return the cells of a run in the order of the columns."""
    is_same = any(map(outcome.has_nothing_new, content["tasks"]))
    return [
        Text(content["run_id"]),
        state_text(content["state"]),
        Text(f"{seconds_of(content):.1f}"),
        Text("nothing new" if is_same else results.main_metric(content, has_baseline=has_baseline)),
        Text(str(content["create_time"])[:19].replace("T", " ")),
        Text(content["pipeline_name"]),
    ]


def _error(content: JsonObject) -> str:
    return f"  {on_one_line(content.get('error') or '')}" if content["state"] == State.FAILED else ""


def _different_parameters(records: list[JsonObject], *, is_narrow: bool) -> list[str]:
    """Return for each run the parameters, as `name=value`, that differ between the listed runs of its pipeline.

    Args:
        records: The listed runs.
        is_narrow: Whether to shorten them, and to leave out a value that most of the runs have.
    """
    values: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for content in records:
        for name, value in content.get("parameters", {}).items():
            values[content["pipeline_name"], name][_text(value)] += 1

    def is_shown(pipeline: str, name: str, text: str) -> bool:
        counts = values[pipeline, name]
        return len(counts) > 1 and not (is_narrow and counts[text] > max(1, counts.total() // 2))

    return [
        "".join(
            f"  {name}={_shorten(text, _MAX_SHORT_VALUE if is_narrow else _MAX_VALUE)}"
            for name, value in content.get("parameters", {}).items()
            if is_shown(content["pipeline_name"], name, text := _text(value))
        )
        for content in records
    ]


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _shorten(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 3]}..."
