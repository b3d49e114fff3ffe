"""The outputs of all runs, from the index of the server: datasets with a fingerprint, models and metrics."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from localvertex.api.pipeline_jobs.records import RunRecords
from localvertex.api.rest.index import Summary
from localvertex.store import record

FINGERPRINT = "fingerprint"
"""The entry of a system.Dataset's metadata that identifies its content."""

_DATASET, _PAGE, _METRICS = "system.Dataset", "system.HTML", "system.Metrics"

_MAX_ENTRIES, _MAX_CHARACTERS = 100, 1_000
"""Of metadata and parameters: entries, and characters of one value."""

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
        "datasets": [*_datasets(content)],
    }


def _datasets(content: Content) -> Iterator[Content]:
    """Yield the datasets that steps have written, each with the pages and metrics of the same step."""
    for task in content["tasks"]:
        if task["kind"] != "step":
            continue
        artifacts = [(name, each) for name, every in task["outputs"]["artifacts"].items() for each in every]
        pages = [
            {"name": name, **place} for name, each in _of_type(artifacts, _PAGE) if (place := _place(each, content))
        ]
        metrics = {name: _small(each.get("metadata") or {}) for name, each in _of_type(artifacts, _METRICS)}
        for name, each in _of_type(artifacts, _DATASET):
            metadata = each.get("metadata") or {}
            if not isinstance(metadata.get(FINGERPRINT), str):
                continue
            given = metadata | {"source": metadata.get("source") or task["inputs"]["parameters"].get("source")}
            yield {
                "title": _title(given) or f"{content['pipeline_name']} / {task['title']} / {name}",
                "fingerprint": metadata[FINGERPRINT],
                "metadata": _small({key: value for key, value in metadata.items() if key != FINGERPRINT}),
                "task": task["path"],
                "time": task["end_time"] or content["create_time"],
                "is_cached": bool(task.get("cache_hit")),
                "uri": str(each.get("uri", "")),
                "pages": pages,
                "metrics": {key: value for key, value in metrics.items() if value},
            }


def _of_type(artifacts: list[tuple[str, Content]], title: str) -> list[tuple[str, Content]]:
    return [(name, each) for name, each in artifacts if each["type"].get("schemaTitle") == title]


def _place(artifact: Content, content: Content) -> dict[str, str] | None:
    return place_in(str(artifact.get("uri", "")), content["work_dir"])


def _title(given: Mapping[str, Any]) -> str:
    """Return the name or the source of a dataset, empty without one."""
    texts = [given.get(name) for name in ("name", "source")]
    return next((each[:_MAX_CHARACTERS] for each in texts if isinstance(each, str) and each), "")


def _small(values: Mapping[str, Any]) -> Content:
    """Return values in a size that fits a list."""
    return {str(name)[:_MAX_CHARACTERS]: _short(value) for name, value in [*values.items()][:_MAX_ENTRIES]}


def _short(value: Any) -> Any:
    text = value if isinstance(value, str) else json.dumps(value)
    return value if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}… ({len(text):,} characters)"


def exists(work_dir: Path, place: Mapping[str, str]) -> bool:
    """Return whether a file is still there, in the folder of a run."""
    run_dir = work_dir / place["run"]
    return (run_dir / record.FILE).is_file() and (run_dir / place["path"]).is_file()
