"""The models of a run, with links that work on its page."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localvertex.show.page.artifacts import link
from localvertex.store import registry


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model of the page."""

    name: str
    path: str
    link: str


def of_record(content: dict[str, Any], run_dir: Path) -> list[Model]:
    """Return the models of a record: registered ones with their folder in the registry, all others with their URI.

    Args:
        content: The record.
        run_dir: The folder of the page.
    """
    return [_model(each, run_dir) for each in content["models"]]


def _model(model: dict[str, Any], run_dir: Path) -> Model:
    name = model["resource_name"]
    if not name:
        path = str(model["uri"])
        return Model(name="", path=path, link=link(run_dir, path))
    folder = registry.folder_of(run_dir.parent, name)
    if folder is None:
        return Model(name=name, path="", link="")
    # The server has the same folders, so that the link works there, too.
    return Model(name=name, path=str(folder), link=f"../{folder.relative_to(run_dir.parent).as_posix()}/")
