"""What a step and a replica see and how failures are followed up: on Vertex AI as documented, and here.

facts.csv has one row per fact. The constants of localvertex come from it, `probe` records the same facts on Vertex AI,
and docs/fidelity.md is generated from it. No row was measured on Vertex AI.
"""

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

VARIABLES = ("cluster", "job", "folder", "trial", "torch", "metadata_variable", "isolation", "localvertex")
"""The groups whose facts are environment variables; the first five are the service's own."""

OF_THIS_MACHINE = "as on this machine"
"""The value of facts that depend on the machine and its user."""


class Fact(NamedTuple):
    """One row of facts.csv."""

    group: str
    """Kind of fact, e.g. "exit"."""
    name: str
    """Unique in its group, e.g. "134"."""
    about: str
    documented: str
    """Summary of the source; empty: undocumented."""
    source: str
    """Address of the public page."""
    here: str
    """The value that the probe records here; of a variable, who has it: step, primary, worker or none."""
    why: str
    """Why it differs; empty: it does not."""
    unrecorded: str
    """Why the probe does not record it; empty: it does."""

    @property
    def id(self) -> str:
        """Return the group and the name, e.g. "exit.134"."""
        return f"{self.group}.{self.name}"


@cache
def facts() -> dict[str, Fact]:
    """Return all facts by id, in the order of the table."""
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        rows = [Fact(**row) for row in csv.DictReader(file)]
    return {row.id: row for row in rows}


def group(name: str) -> dict[str, Fact]:
    """Return the facts of a group by their names."""
    return {each.name: each for each in facts().values() if each.group == name}


def variables() -> set[str]:
    """Return the names of all variables of the table."""
    return {each.name for each in facts().values() if each.group in VARIABLES}


def number(fact_id: str) -> int:
    """Return the value here of a fact that is a number."""
    return int(facts()[fact_id].here)
