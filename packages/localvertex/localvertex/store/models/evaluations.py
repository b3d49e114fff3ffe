"""Evaluations of a version of a model, one file each in the version's folder."""

import json
import re
from contextlib import suppress
from pathlib import Path

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput import atomic_write
from localvertex.store import record
from localvertex.store.models.reading import object_in

_FOLDER = "evaluations"

_FILE = re.compile(r"[0-9]+\.json")

_LEFT = re.compile(r"\.[0-9]+\.json\.[0-9a-f]{8}\.partial")
"""Files that a killed process left; the registry's lock is held wherever it is removed."""


def add(version: Path, content: JsonObject) -> str:
    """Store an evaluation of the version in a folder, and return its id."""
    folder, number = version / _FOLDER, record.new_number()
    folder.mkdir(exist_ok=True)
    _clear(folder, _LEFT)
    atomic_write.write_text(folder / f"{number}.json", json.dumps({**content, "create_time": record.now()}, indent=1))
    return number


def ids(version: Path) -> list[str]:
    """Return the ids of all evaluations of a version."""
    folder = version / _FOLDER
    names = [each.name for each in folder.iterdir()] if folder.is_dir() else []
    return sorted(name.removesuffix(".json") for name in names if _FILE.fullmatch(name))


def content(version: Path, evaluation_id: str) -> JsonObject:
    """Return an evaluation.

    Raises:
        OSError: It does not exist, for example.
        ValueError: It is damaged.
    """
    return object_in(version / _FOLDER / f"{evaluation_id}.json")


def remove(version: Path) -> None:
    """Remove all evaluations of a version; files that the registry did not make stay."""
    folder = version / _FOLDER
    with suppress(FileNotFoundError):
        _clear(folder, _LEFT)
        _clear(folder, _FILE)
    with suppress(OSError):
        folder.rmdir()


def _clear(folder: Path, names: re.Pattern[str]) -> None:
    for each in [*folder.iterdir()]:
        if names.fullmatch(each.name):
            each.unlink(missing_ok=True)
