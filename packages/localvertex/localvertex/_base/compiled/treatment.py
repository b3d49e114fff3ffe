"""How localvertex treats each field of a compiled file: the facts that the reader follows and the docs show.

treatment.csv has one row per field of kubeflow's pipeline_spec.proto and of the PipelineJob of Vertex AI. Its tests
prove each row with a file; docs/compiled-file.md is generated from it.
"""

import csv
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import NamedTuple


class Here(StrEnum):
    """Treatment of a field in a local run."""

    AS_ON_VERTEX = "as on Vertex AI"
    DIFFERENTLY = "differently"
    NO_EFFECT = "no effect"
    REFUSED = "refused"


class Treatment(NamedTuple):
    """One row of treatment.csv."""

    message: str
    """The message of the protocol, without its package, e.g. "PipelineTaskSpec.RetryPolicy"."""
    field: str
    """The name of the field in JSON."""
    here: Here
    how: str
    """The difference, or the reason of the refusal; may be empty."""


@cache
def treatments() -> dict[tuple[str, str], Treatment]:
    """Return the treatment of every field by message and field, in the order of the protocol."""
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        rows = [Treatment(row["message"], row["field"], Here(row["here"]), row["how"]) for row in csv.DictReader(file)]
    return {(row.message, row.field): row for row in rows}
