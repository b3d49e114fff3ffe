"""The list of runs: one line per run, and a second line for what does not fit on a narrow terminal."""

import json
from collections import defaultdict
from typing import Any

from rich.text import Text

from localvertex.show import results
from localvertex.show.terminal.rows import align, num_fitting, wrap
from localvertex.show.terminal.summary import console, seconds_of, state_text
from localvertex.store import outcome

_COLUMNS = ("run", "state", "seconds", "result", "started", "pipeline")
_SECONDS = _COLUMNS.index("seconds")
_MIN_COLUMNS = 2
"""Run and state are always shown."""

_MAX_VALUE = 60
"""Maximum characters of a parameter."""


def show(records: list[dict[str, Any]]) -> None:
    """Print the runs, each with its main metric and the parameters that differ between them."""
    out = console()
    width = out.size.width if out.is_terminal else None
    parameters = _different_parameters(records)
    rows = [tuple(map(Text, _COLUMNS)), *map(_cells, records)]
    num_shown = max(_MIN_COLUMNS, num_fitting(rows, width=width))
    blocks = align([row[:num_shown] for row in rows], width=width, right=_SECONDS)
    for row, block, given in zip(rows, blocks, [[], *parameters], strict=True):
        rest = [cell.plain for cell in row[num_shown:]] if row is not rows[0] else []
        line = block[-1] + Text("  ".join(["", *given]))
        if num_shown == len(_COLUMNS) and (width is None or line.cell_len <= width):
            block[-1] = line
        else:
            block += wrap([*rest, *given], width=width)
        for line in block:
            out.print(line)


def _cells(content: dict[str, Any]) -> tuple[Text, ...]:
    """Return the cells of a run in the order of the columns."""
    is_same = any(map(outcome.has_nothing_new, content["tasks"]))
    return (
        Text(content["run_id"]),
        state_text(content["state"]),
        Text(f"{seconds_of(content):.1f}"),
        Text("nothing new" if is_same else results.main_metric(content)),
        Text(str(content["create_time"])[:19].replace("T", " ")),
        Text(content["pipeline_name"]),
    )


def _different_parameters(records: list[dict[str, Any]]) -> list[list[str]]:
    """Return for each run the parameters, as `name=value`, that differ between the listed runs of its pipeline."""
    values: dict[tuple[str, str], set[str]] = defaultdict(set)
    for content in records:
        for name, value in content.get("parameters", {}).items():
            values[content["pipeline_name"], name].add(_text(value))
    return [
        [
            f"{name}={_shorten(_text(value))}"
            for name, value in content.get("parameters", {}).items()
            if len(values[content["pipeline_name"], name]) > 1
        ]
        for content in records
    ]


def _text(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False, sort_keys=True)


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MAX_VALUE else f"{text[: _MAX_VALUE - 3]}..."
