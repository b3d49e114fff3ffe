"""The routes that compare runs."""

import hashlib
import json
from pathlib import Path
from typing import Any

from localvertex.api.rest.errors import invalid
from localvertex.console.comparing import curves, tables
from localvertex.console.local_route import LocalCall, local_route
from localvertex.console.runs.folders import find_run
from localvertex.console.runs.record import WatchedRuns
from localvertex.store import run_folder
from localvertex_base.compiled.load import documents_of
from localvertex_base.userinput import reading
from localvertex_base.userinput.errors import UserError

_MIN_RUNS, _MAX_RUNS = 2, 8


class Comparisons:
    """Compares runs of a work folder; each answer is read from their records and files.

    Args:
        records: The runs.
    """

    def __init__(self, records: WatchedRuns) -> None:
        self._records, self._work_dir = records, records.work_dir

    @local_route("GET", "/local/compare")
    def compare(self, call: LocalCall) -> dict[str, Any]:
        """Return parameters, metrics and steps side by side."""
        contents = self._contents(call)
        return tables.compare([each | {"spec": _spec_digest(self._work_dir / each["id"])} for each in contents])

    @local_route("GET", "/local/compare/curves")
    def curves(self, call: LocalCall) -> dict[str, Any]:
        """Return the training curves of the runs."""
        return curves.compare(self._contents(call))

    def _contents(self, call: LocalCall) -> list[dict[str, Any]]:
        """Return the records of the runs in the order of the request, each with its folder's name as `id`.

        Raises:
            ApiError: Fewer than two or too many are named, one does not exist, or its record is damaged.
        """
        names = [*dict.fromkeys(each for each in call.query.get("runs", "").split(",") if each)]
        if not _MIN_RUNS <= len(names) <= _MAX_RUNS:
            raise invalid(f"runs: expected {_MIN_RUNS} to {_MAX_RUNS} different runs, found {len(names)}")
        return [{**self._records.content(find_run(self._work_dir, name)), "id": name} for name in names]


def _spec_digest(run_dir: Path) -> str:
    """Return what identifies the pipeline of a run without its name and values; empty when it cannot be read."""
    try:
        path = run_folder.pipeline_copy(run_dir)
        content = documents_of(reading.read_bytes(path), path.name)[0]
    except (OSError, ValueError, UserError):
        return ""
    spec = content.get("pipelineSpec", content)
    return hashlib.sha256(json.dumps(spec, sort_keys=True, default=str).encode()).hexdigest()
