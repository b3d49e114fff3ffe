"""A user's own network as source code: where it lies, and its digest. Imports nothing of it."""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import pathlib
import re
import sys

from userinput.errors import UserError


def check_name(name: str) -> None:
    """Refuse a name that is not package.module:function.

    Raises:
        UserError: it is not.
    """
    if not re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", name):
        raise UserError(
            f"model={name!r} is not of the form package.module:function, e.g. trainer.models.custom.separable:build"
        )


def digest(name: str) -> str:
    """64 hexadecimal digits: SHA-256 over the Python files of the top-level package that the module belongs to.

    All files, because the module may import its neighbours: a run is trained anew rather than continued with another
    network.

    Raises:
        UserError: there is no such package.
    """
    top = name.split(":")[0].split(".")[0]
    # A top-level name: nothing is imported to find it.
    spec = importlib.util.find_spec(top)
    if spec is None or (spec.origin is None and not spec.submodule_search_locations):
        raise UserError(not_found(name, top))
    result = hashlib.sha256()
    for relative, path in sorted(_sources(spec)):
        result.update(f"{relative}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return result.hexdigest()


def not_found(name: str, module: str) -> str:
    """What to tell where a module does not exist."""
    places = ", ".join(place or "." for place in sys.path[:3])
    return (
        f"model={name!r}: there is no module {module!r}; it is looked for in {places} and what is installed: put it"
        " into trainer/models/custom/, install its package, or add its folder to PYTHONPATH (docs/models.md)"
    )


def _sources(spec: importlib.machinery.ModuleSpec) -> list[tuple[str, pathlib.Path]]:
    """(path relative to the package, path) of its Python files."""
    if not spec.submodule_search_locations:
        path = pathlib.Path(spec.origin or "")
        return [(path.name, path)]
    return [
        (path.relative_to(location).as_posix(), path)
        for location in spec.submodule_search_locations
        for path in pathlib.Path(location).rglob("*.py")
    ]
