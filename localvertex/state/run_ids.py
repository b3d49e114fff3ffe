"""Names of runs: made, checked, and found again."""

import re
from datetime import UTC, datetime
from pathlib import Path

from userinput.errors import UserError

RUN_ID = re.compile(r"[a-z][a-z0-9-]{0,127}")
"""What Vertex accepts as the id of a pipeline job."""

RESERVED = ("models", "training", "api", "buckets")
"""Folders of the work directory that are no runs."""


def readable_id(pipeline_name: str, ending: str) -> str:
    """An id from the pipeline's name, whatever characters that has."""
    name = re.sub(r"[^a-z0-9-]+", "-", pipeline_name.lower()).strip("-")[:100] or "pipeline"
    stem = f"{name}-{ending}"
    return stem if stem[0].isalpha() else f"p-{stem}"


def new_run_id(pipeline_name: str, work_dir: Path) -> str:
    """A free id as the SDK makes it: the pipeline's name and the time; counted on within one second."""
    stem = readable_id(pipeline_name, f"{datetime.now(UTC):%Y%m%d%H%M%S}")
    number, run_id = 1, stem
    while (work_dir / run_id).exists():
        number += 1
        run_id = f"{stem}-{number}"
    return run_id


def check_run_id(run_id: str, work_dir: Path) -> str:
    """A run id that the user chose.

    Raises:
        UserError: it is not a valid id, or it is taken.
    """
    if not RUN_ID.fullmatch(run_id):
        raise UserError(
            f"--run-id {run_id!r}: lower-case letters, digits and '-' expected, a letter first, 128 at most"
        )
    if run_id in RESERVED:
        raise UserError(
            f"--run-id {run_id!r} is the name of another folder of the work directory; choose a different one"
        )
    if (work_dir / run_id).exists():
        raise UserError(f"--run-id {run_id!r}: {work_dir / run_id} exists already; choose another or clean it first")
    return run_id
