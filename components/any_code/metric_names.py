"""The meaning of the names of metrics: their better direction, their range, and the predictions that show them.

Names are compared in lower case, with `_` for other separators, and without `val_`, `test_` and the like.
"""

import csv
import math
import pathlib
import re
from dataclasses import dataclass

MAXIMIZE, MINIMIZE = DIRECTIONS = ("maximize", "minimize")
_PREFIXES = re.compile(r"^((val|valid|validation|test|eval|evaluation)_)+(?=.)")


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """The meaning of one name."""

    direction: str
    lowest: float = -math.inf
    highest: float = math.inf
    measure: str = ""
    """Name in `measures`, which computes it from the predictions; empty if they do not show it."""
    is_claim_checked: bool = True
    """Whether the measure is this very metric; otherwise it only decides whether the model has learnt anything."""


def _read() -> dict[str, Meaning]:
    """Return the meaning of each name in the table, whose rows have several spellings."""
    with pathlib.Path(__file__).with_suffix(".csv").open(newline="", encoding="utf-8") as file:
        return {
            name: Meaning(
                direction=row["direction"],
                lowest=float(row["lowest"] or -math.inf),
                highest=float(row["highest"] or math.inf),
                measure=row["measure"],
                is_claim_checked=bool(row["claim"]),
            )
            for row in csv.DictReader(file)
            for name in row["names"].split()
        }


_MEANINGS = _read()


def meaning_of(metric: str) -> Meaning | None:
    """Return the meaning of a metric's name; None for an unknown one."""
    name = re.sub(r"[^a-z0-9]+", "_", metric.casefold()).strip("_")
    return _MEANINGS.get(name) or _MEANINGS.get(_PREFIXES.sub("", name))
