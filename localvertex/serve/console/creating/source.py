"""Where a new run comes from: a text that was dropped on the page, a compiled file of the folder, or an earlier run."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localvertex.processes.sinks import MASK
from localvertex.serve.api.errors import invalid
from localvertex.state import run_folder
from localvertex.state.runs import find_readable
from vertex_gpu_training.compiled.load import documents_of, pipeline_of
from vertex_gpu_training.compiled.spec import Pipeline
from vertex_gpu_training.userinput import reading
from vertex_gpu_training.userinput.errors import UserError

FOLDER = Path("build")
"""Where `compile.py` writes, below the folder in which the server was started."""

_MAX_FILES = 100

_KINDS = ("content", "file", "run")


@dataclass(frozen=True, kw_only=True, eq=False)
class Source:
    """A compiled pipeline."""

    content: str
    path: str
    """The file as a command names it."""
    documents: list[dict[str, Any]]
    pipeline: Pipeline
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """The values of the earlier run."""
    artifacts: Mapping[str, str] = field(default_factory=dict)
    """The files of the earlier run's input artifacts."""
    region: str = ""
    """The region of the earlier run."""
    secrets: tuple[str, ...] = ()
    """Parameters of the earlier run that contained secrets, which are not stored."""

    @property
    def is_job(self) -> bool:
        """Whether the file is a PipelineJob, which has settings of the run."""
        return "pipelineSpec" in self.documents[0]


def compiled_files() -> list[Path]:
    """Return the files that may be compiled pipelines, the newest first."""
    found = [each for suffix in ("json", "yaml", "yml") for each in FOLDER.glob(f"*.{suffix}") if each.is_file()]
    return sorted(found, key=lambda each: each.stat().st_mtime, reverse=True)[:_MAX_FILES]


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
    path = next((each for each in compiled_files() if str(each) == given), None)
    if path is None:
        raise invalid(f"there is no file {given[:200]!r} in {FOLDER}/")
    return _source(_text(path), path.name, str(path))


def _of_run(run_id: str, work_dir: Path) -> Source:
    found = find_readable(work_dir, run_id)
    path, record = run_folder.pipeline_copy(found.run_dir), found.content
    secrets = tuple(name for name, each in record["parameters"].items() if MASK in str(each))
    return _source(
        _text(path),
        path.name,
        short(path),
        parameters={name: each for name, each in record["parameters"].items() if name not in secrets},
        artifacts={name: each[0]["uri"] for name, each in record.get("input_artifacts", {}).items() if each},
        region=str(record.get("region", "")),
        secrets=secrets,
    )


def _source(content: str, name: str, path: str, **values: Any) -> Source:
    name = reading.shown(name)
    if not content.strip():
        raise UserError(f"{name} is empty; expected JSON or YAML")
    documents = documents_of(content.encode(), name)
    pipeline = pipeline_of(documents, name)
    return Source(content=content, path=path, documents=documents, pipeline=pipeline, **values)


def _text(path: Path) -> str:
    try:
        return reading.read_bytes(path).decode()
    except UnicodeDecodeError:
        raise UserError(f"{path.name} is not a compiled pipeline; expected JSON or YAML in UTF-8") from None


def short(path: Path) -> str:
    """Return a path as a user in the server's folder writes it."""
    path = path.absolute()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else os.fspath(path)
