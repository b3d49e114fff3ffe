"""The results of a run: metrics, models, and whether it had nothing new to do."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localvertex.show.page.artifacts import link
from localvertex.state import registry, runs

_NOTHING_NEW = "has_nothing_new"
"""The output parameter by which a step reports that an earlier run did the same (docs/pipeline.md)."""

_IDENTITY = "run_id"
"""Its output parameter that identifies what was computed: configuration and data."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model of the page."""

    name: str
    path: str
    link: str


@dataclass(frozen=True, kw_only=True)
class NothingNew:
    """The earlier run that did the same; all fields are empty if it is no longer in the work directory."""

    identity: str
    run: str
    metrics: list[dict[str, Any]]
    models: list[Model]


def models(content: dict[str, Any], run_dir: Path) -> list[Model]:
    """Return the models of a record: registered ones with their registry folder, all others with their URI."""
    return [_model(each, run_dir, run_dir) for each in content["models"]]


def _model(model: dict[str, Any], run_dir: Path, page_dir: Path) -> Model:
    """Return a model with a link that works on the page in `page_dir`."""
    name, work_dir = model["resource_name"], run_dir.parent
    if not name:
        path = str(model["uri"])
        return Model(name="", path=path, link=link(page_dir, path))
    if not registry.exists(work_dir, name):
        return Model(name=name, path="", link="")
    model_id, _, version = str(name).rpartition("/")[2].partition("@")
    folder = f"models/{model_id}/{version or 1}"
    # The server has the same folders, so that the link works there, too.
    return Model(name=name, path=str(work_dir / folder), link=f"../{folder}/")


def nothing_new(content: dict[str, Any], run_dir: Path) -> NothingNew | None:
    """Return the earlier run with the same result; None unless a step reported nothing new."""
    found = next((each for each in content["tasks"] if _outputs(each).get(_NOTHING_NEW) is True), None)
    if found is None:
        return None
    identity = _outputs(found).get(_IDENTITY)
    for earlier in runs.find_all(run_dir.parent) if identity else []:
        same = [each for each in earlier.content.get("tasks", []) if _outputs(each).get(_IDENTITY) == identity]
        if earlier.run_dir != run_dir and same and earlier.content["metrics"]:
            return NothingNew(
                identity=str(identity),
                run=earlier.run_dir.name,
                metrics=earlier.content["metrics"],
                models=[_model(each, earlier.run_dir, run_dir) for each in earlier.content["models"]],
            )
    return NothingNew(identity=str(identity or ""), run="", metrics=[], models=[])


def _outputs(task: dict[str, Any]) -> dict[str, Any]:
    return dict(task["outputs"]["parameters"])
