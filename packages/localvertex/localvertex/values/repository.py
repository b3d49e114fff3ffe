"""What a pipeline and the repository around its file name and contain, to find what a missing module comes from.

A module's name is not a package's name: an index may have another project's package of that name, which would run. So a
package is named only by the pipeline, by the repository's requirements, or by distributions.csv. That table has the
modules that training images have most, even where the package has the same name, because that is not a rule. Each row
was checked on its date against the package's files or the project's page.
"""

import ast
import configparser
import csv
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from localvertex._base.compiled.spec import Pipeline
from localvertex._base.json_object import JsonObject
from localvertex._base.nested import parts
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import parse_python, parse_toml, read_bytes
from localvertex.values.sources import scripts, source_files

_REQUIREMENT = re.compile(
    r"\s*([A-Za-z0-9][\w.-]*)\s*(\[[\w.,\s-]*\])?\s*((?:[<>=!~]=?=?\s*[\w.*+!-]+\s*,?\s*)*)(?=$|[;#\\]|\s--)", re.ASCII
)
"""Name, extras and versions; an address after the name does not match."""

_PIP = re.compile(r"""\bpip3? install((?:'[^']*'|"[^"]*"|[^\n&|;'"])*)""")
_INDEX = re.compile(r"^\s*(?:--(?:extra-)?index-url|--find-links|--no-index|-i|-f)\b", re.MULTILINE)
_FLAGS = ("--quiet", "-q", "--no-warn-script-location", "--no-deps", "--upgrade", "-U", "--no-cache-dir")
"""Options of pip without a value."""

_REQUIREMENT_FILES = ("requirements*.txt", "requirements/*.txt")
_MAX_FILES = 20_000
"""A home folder has more, and the first answer should come within seconds."""

_SOURCE_FOLDERS = ("", "src")


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A pipeline with the folders of its repository."""

    file: Path | None = None
    """The compiled file; None: there is no repository."""
    scripts: tuple[str, ...] = ()
    """The commands of its steps."""
    sources: tuple[Path, ...] = ()
    """Folders that the user names as the source of images."""

    @classmethod
    def of(cls, pipeline: Pipeline, file: str | Path, sources: Iterable[Path]) -> "Repository":
        """Return the repository of a pipeline's file."""
        scripts = tuple("\n".join(each.command[:3]) for each in pipeline.containers)
        return cls(file=Path(file), scripts=scripts, sources=tuple(sources))

    @cached_property
    def folders(self) -> list[Path]:
        """Return the folders from the file's own to the one with .git, without that only its own, and the sources."""
        parents = self.file.absolute().parents if self.file else ()
        root = next((number for number, each in enumerate(parents) if os.path.exists(each / ".git")), 0)
        return [*parents[: root + 1], *self.sources]

    def source_of(self, module: str) -> str:
        """Return the folder that has a module, relative to the current one; empty if none has."""
        name, here = module.partition(".")[0], Path.cwd()
        found = (
            folder / inner
            for folder in (here, *self.folders)
            for inner in _SOURCE_FOLDERS
            if os.path.isdir(folder / inner / name) or os.path.isfile(folder / inner / f"{name}.py")
        )
        return next((os.path.relpath(each, here) for each in found), "")

    def files_like(self, name: str) -> list[tuple[str, str]]:
        """Return the files, from the folder of the pipeline's file down, that are most like a script of an image.

        Each with the folder that is the image's source for it; relative to the current folder.
        """
        found = scripts(self._files, self.file.absolute().parent, name) if self.file else []
        return [(os.path.relpath(file), os.path.relpath(folder)) for file, folder in found]

    @cached_property
    def _files(self) -> list[Path]:
        """Return the files from the folder of the pipeline's file down; none if they are too many to look through."""
        found = [*islice(source_files(self.file.absolute().parent if self.file else None), _MAX_FILES + 1)]
        return found if len(found) <= _MAX_FILES else []

    def package_of(self, module: str) -> str:
        """Return the requirement that installs a module; empty if nothing names its package."""
        parts = module.split(".")
        # Where a part of a package is missing, the package itself is there; several share only a namespace.
        for number in range(len(parts), min(len(parts), 2) - 1, -1):
            name = ".".join(parts[:number])
            known = _distributions().get(name, [])
            for package in (*known, name):
                if requirement := self._requirements.get(_normalized(package)):
                    return requirement
            if known:
                return known[0]
        return ""

    @cached_property
    def _requirements(self) -> dict[str, str]:
        """Return what the pipeline and the repository require, by normalized name."""
        found: dict[str, str] = {}
        # What has an index of its own may not be in the one that pip asks here.
        for texts in (_of_scripts(self.scripts), _of_folders(self.folders)):
            for match in map(_REQUIREMENT.match, [] if any(map(_INDEX.search, texts)) else texts):
                if match:
                    found.setdefault(_normalized(match[1]), "".join("".join(filter(None, match.groups())).split()))
        return found


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def _distributions() -> dict[str, list[str]]:
    """Return the packages that have a module, the usual one first."""
    found: dict[str, list[str]] = {}
    with Path(__file__).with_name("distributions.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["module"], []).append(row["distribution"])
    return found


def _of_scripts(scripts: Iterable[str]) -> list[str]:
    """Return the words of pip calls that are requirements or name an index."""
    found = []
    for call in (call for script in scripts for call in _PIP.findall(script)):
        with suppress(ValueError):
            words = shlex.split(call)
            pairs = zip(["", *words], words, strict=False)
            found += [word for before, word in pairs if not before.startswith("-") or before in _FLAGS]
    return found


def _of_folders(folders: Iterable[Path]) -> list[str]:
    """Return the lines of all files with requirements that are requirements or name an index."""
    found, own = [], set()
    for folder in folders:
        for pattern in _REQUIREMENT_FILES:
            for path in sorted(folder.glob(pattern)):
                found += _text(path).splitlines()
        setup = _of_setup(_text(folder / "setup.py"))
        own |= {*map(_normalized, setup.get("name", ()))}
        found += [*setup.get("install_requires", ()), *setup.get("extras_require", ())]
        with suppress(UserError):
            tables = parse_toml(_text(folder / "pyproject.toml").encode(), "")
            own |= _own_names(tables)
            found += _of_pyproject(tables)
        config = configparser.ConfigParser(interpolation=None, strict=False)
        with suppress(configparser.Error):
            config.read_string(_text(folder / "setup.cfg"))
            own.add(_normalized(config.get("metadata", "name", fallback="")))
            found += config.get("options", "install_requires", fallback="").splitlines()
            if config.has_section("options.extras_require"):
                found += [line for _, text in config.items("options.extras_require") for line in text.splitlines()]
    # A project that names itself, for its extras, is here and not in an index.
    return [line for line in found if not (match := _REQUIREMENT.match(line)) or _normalized(match[1]) not in own]


def _of_setup(source: str) -> dict[str, list[str]]:
    """Return the texts of each argument in a setup.py, written there or under a name, without the keys of tables."""
    found = dict[str, list[str]]()
    with suppress(ValueError, RecursionError, MemoryError):
        nodes = [*ast.walk(parse_python(source))]
        named = {ast.unparse(each.targets[0]): each.value for each in nodes if isinstance(each, ast.Assign)}
        for each in nodes:
            if isinstance(each, ast.keyword) and each.arg:
                with suppress(ValueError, TypeError):
                    value = ast.literal_eval(named.get(ast.unparse(each.value), each.value))
                    found[each.arg] = [text for text in parts(value) if isinstance(text, str)]
    return found


def _text(path: Path) -> str:
    """Return the text of a file; empty if it cannot be read."""
    with suppress(UserError):
        return read_bytes(path).decode("utf-8-sig", "replace")
    return ""


def _own_names(tables: JsonObject) -> set[str]:
    """Return the project's name, and the packages that it takes from elsewhere than an index."""
    tool = _table(tables, "tool")
    names = [_table(tables, "project").get("name"), _table(tool, "poetry").get("name"), *_table(tool, "uv", "sources")]
    return {_normalized(str(each)) for each in names}


def _of_pyproject(tables: JsonObject) -> Iterator[str]:
    project, uv, poetry = _table(tables, "project"), _table(tables, "tool", "uv"), _table(tables, "tool", "poetry")
    groups = (*_table(project, "optional-dependencies").values(), *_table(tables, "dependency-groups").values())
    for listed in (project.get("dependencies"), *groups):
        yield from (each for each in (listed if isinstance(listed, list) else ()) if isinstance(each, str))
    # Poetry's versions are not pip's; what has no text for a version may come from a folder.
    yield from (name for name, given in _table(poetry, "dependencies").items() if isinstance(given, str))
    if poetry.get("source") or uv.keys() & {"index", "index-url", "extra-index-url", "find-links", "no-index"}:
        yield "--index-url"


def _table(value: Any, *names: str) -> JsonObject:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}
