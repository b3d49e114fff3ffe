"""The outputs of all runs, from the index of the server: fingerprints of datasets, models and metrics."""

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from localvertex.api.pipeline_jobs.records import RunRecords
from localvertex.api.rest.index import Summary
from localvertex.store import record

_FINGERPRINT = "fingerprint"
"""The entry of a system.Dataset's metadata that identifies its content."""

_MAX_ENTRIES, _MAX_CHARACTERS = 100, 1_000
"""Of metrics and parameters: entries, and characters of one value."""

Content = dict[str, Any]


class RunOutputs(RunRecords):
    """The runs of a work folder with their outputs, for lists that do not read 500 records."""

    collection = "runs' outputs"

    def summary(self, resource_id: str) -> Summary:
        """Read a run."""
        live = self.live(resource_id)
        try:
            content = record.read(self._work_dir / resource_id)
            return Summary.of(_outputs(content), live=live, is_final=bool(content.get("end_time")))
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            return Summary(content=None, damaged=str(error)[:200], live=None)


def place_in(uri: str, work_dir: str) -> dict[str, str] | None:
    """Return the run and the path in its folder of a file of the work folder, None for any other address."""
    try:
        run, *path = PurePosixPath(uri).relative_to(work_dir).parts
    except ValueError:
        return None
    return {"run": run, "path": "/".join(path)} if path and ".." not in (run, *path) else None


def _outputs(content: Content) -> Content:
    return {
        "create_time": content["create_time"],
        "uuid": str(content.get("uuid", "")),
        "parameters": _small(content.get("parameters") or {}),
        "metrics": _small({each["name"]: each["value"] for each in content["metrics"]}),
        "models": [name for each in content["models"] if (name := each.get("resource_name"))],
        "datasets": [each for task in content["tasks"] if task["kind"] == "step" for each in _fingerprints(task)],
    }


def _fingerprints(task: Content) -> list[str]:
    """Return the fingerprints of the datasets that a step has written."""
    written = [each for every in task["outputs"]["artifacts"].values() for each in every]
    values = [
        (each.get("metadata") or {}).get(_FINGERPRINT)
        for each in written
        if each["type"].get("schemaTitle") == "system.Dataset"
    ]
    return [each for each in values if isinstance(each, str)]


def _small(values: Mapping[str, Any]) -> Content:
    """Return values in a size that fits a list."""
    return {str(name)[:_MAX_CHARACTERS]: _short(value) for name, value in [*values.items()][:_MAX_ENTRIES]}


def _short(value: Any) -> Any:
    text = value if isinstance(value, str) else json.dumps(value)
    return value if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}… ({len(text):,} characters)"
