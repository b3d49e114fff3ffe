"""The pipeline of a new run: a file that was dropped on the page, a compiled file of the folder, or an earlier run."""

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG
from typing import Any

from localvertex._base.compiled.load import documents_of, pipeline_of
from localvertex._base.compiled.spec import Pipeline
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput import reading
from localvertex._base.userinput.errors import UserError
from localvertex.api.rest.errors import invalid
from localvertex.console.runs.folders import find_run
from localvertex.processes.sinks import MASK
from localvertex.show.view import shape
from localvertex.store import run_folder

FOLDER = Path("build")
"""The folder into which `compile.py` writes, below the folder in which the server was started."""

_SUFFIXES = (".json", ".yaml", ".yml")

_MAX_KEPT_CHARS = 5 * 2**20
"""Larger files are JSON, which is read quickly, and would take much memory."""

_KINDS = ("content", "file", "run")


@dataclass(frozen=True, kw_only=True, eq=False)
class Source:
    """A compiled pipeline."""

    content: str
    path: str
    """The file as a command names it."""
    file: str
    """The absolute path of the file; the name of a dropped file."""
    sha256: str
    documents: list[JsonObject]
    pipeline: Pipeline
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Initial values of the form, from the earlier run or a PipelineJob."""
    region: str = ""
    """The region of the earlier run."""
    warnings: tuple[str, ...] = ()
    """Settings that the form cannot take over from the earlier run."""

    @property
    def is_job(self) -> bool:
        """Whether the file is a PipelineJob, which has settings of the run."""
        return "pipelineSpec" in self.documents[0]


def compiled_files() -> dict[str, os.stat_result]:
    """Return the files that may be compiled pipelines, the newest first."""
    found = {}
    for path in FOLDER.iterdir() if FOLDER.is_dir() else ():
        # A name that cannot be shown cannot be chosen.
        if path.suffix in _SUFFIXES and path.name.isprintable():
            with suppress(OSError):
                found[str(path)] = path.stat()
    newest = sorted(found, key=lambda each: found[each].st_mtime, reverse=True)
    return {each: found[each] for each in newest if S_ISREG(found[each].st_mode)}


def read(body: Mapping[str, Any], work_dir: Path) -> Source:
    """Read the pipeline that a request names.

    Args:
        body: One of `content` (with `name`), `file` and `run`.
        work_dir: The folder of the runs.

    Raises:
        ApiError: The request names none, or several.
        UserError: It is not a compiled pipeline.
    """
    kinds = [kind for kind in _KINDS if kind in body]
    if len(kinds) != 1 or not isinstance(body[kinds[0]], str):
        raise invalid(f"expected one of {', '.join(_KINDS)} as text")
    given = body[kinds[0]]
    if kinds == ["content"]:
        name = str(body.get("name") or "pipeline")
        return _source(given, name, str(body.get("path") or name))
    if kinds == ["run"]:
        return _of_run(given, work_dir)
    if given not in compiled_files():
        raise invalid(f"there is no file {given[:200]!r} in {FOLDER}/")
    return _source(_text(Path(given)), Path(given).name, given)


def _of_run(run_id: str, work_dir: Path) -> Source:
    run_dir = find_run(work_dir, run_id)
    try:
        content = shape.read(run_dir)
    except ValueError as error:
        raise UserError(f"the record of {run_id} is damaged: {error}") from None
    path = run_folder.pipeline_copy(run_dir)
    values = content.get("parameters", {})
    secrets = [name for name, each in values.items() if MASK in str(each)]
    return _source(
        _text(path),
        path.name,
        short(path),
        parameters={name: each for name, each in values.items() if name not in secrets},
        region=str(content.get("region", "")),
        warnings=tuple(
            f"Parameter {name} contained a secret, which is not stored. Enter it again." for name in secrets
        ),
    )


def _source(content: str, name: str, path: str, **values: Any) -> Source:
    parse = _parse if len(content) <= _MAX_KEPT_CHARS else _parse.__wrapped__
    documents, pipeline = parse(content, reading.display(name))
    values = {"parameters": pipeline.job.parameters} | values
    file, data = name, content.encode()
    # Another file may have the name of a dropped one.
    with suppress(OSError, UserError):
        found = reading.read_bytes(Path(path))
        if _decoded(found, path) == content:
            file, data = os.path.abspath(path), found
    digest = hashlib.sha256(data).hexdigest()
    return Source(
        content=content, path=path, file=file, sha256=digest, documents=documents, pipeline=pipeline, **values
    )


@lru_cache(maxsize=2)
def _parse(content: str, name: str) -> tuple[list[JsonObject], Pipeline]:
    """Read a compiled file. A form is checked after each change, and YAML takes about a second per MiB to read."""
    if not content.strip():
        raise UserError(f"{name} is empty; expected JSON or YAML")
    documents = documents_of(content.encode(), name)
    return documents, pipeline_of(documents, name)


def _text(path: Path) -> str:
    return _decoded(reading.read_bytes(path), path.name)


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode(json.detect_encoding(data))
    except UnicodeDecodeError:
        raise UserError(f"{name} is not a compiled pipeline; expected JSON or YAML in UTF-8") from None


def short(path: Path) -> str:
    """Return a path as a user in the server's folder writes it."""
    path = path.absolute()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else os.fspath(path)
