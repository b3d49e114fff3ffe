"""The fields of a run: its record without its tasks, and what the page shows besides."""

from pathlib import Path

from localvertex._base.compiled.spec import Pipeline
from localvertex._base.json_object import JsonObject
from localvertex.show import results
from localvertex.show.view.groups import split_description
from localvertex.store import outcome, record
from localvertex.store.steps import failure
from localvertex.store.task import State


def of_run(run_dir: Path, content: JsonObject, *, state: str, error: str | None) -> JsonObject:
    """Return the fields of a run.

    Args:
        run_dir: Its folder.
        content: Its record.
        state: Its state, which the record does not know when its process was killed.
        error: Why it failed.
    """
    log, lines = failure.log_of(content, run_dir) if error else (None, [])
    known = {name: value for name, value in content.items() if name not in ("tasks", record.UNRESTORED)}
    return known | {
        "state": state,
        "error": error,
        "id": run_dir.name,
        "name": run_dir.name,
        "failure": {"lines": lines, "log": str(log.relative_to(run_dir))} if log else None,
        "main_metric": results.main_metric(content),
        outcome.FIELD: outcome.of(content) if State(content["state"]).is_final else None,
    }


def of_file(pipeline: Pipeline) -> JsonObject:
    """Return the description and the default values of a pipeline."""
    inputs = pipeline.root.input_parameters
    defaults = {name: each.default for name, each in inputs.items() if each.default is not None}
    description, _ = split_description(pipeline.description, inputs)
    return {"description": description, "defaults": defaults}
