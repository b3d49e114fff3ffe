"""A construct of compiled files: a small pipeline and the values that a run of it is expected to give."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "compiled"
"""The compiled files, which `compile.py` writes."""

NOT_RUN = "not run"
"""`kfp_local` of a construct that would sleep for minutes there, or install packages into this environment."""

Edit = Callable[[dict[str, Any]], Any]
"""Changes a compiled file; returns its second document if that has one."""


@dataclass(frozen=True, kw_only=True)
class Construct:
    """One construct and what is expected of it."""

    pipeline: Any
    """The pipeline function."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Given to the run."""
    artifacts: Mapping[str, Any] = field(default_factory=dict)
    """Input artifacts of the run: name -> name of a file that the test writes."""
    outputs: Mapping[str, Any] = field(default_factory=dict)
    """Output parameters of the pipeline, all of them."""
    tasks: Mapping[str, Any] = field(default_factory=dict)
    """Output parameters of single tasks, by path."""
    states: Mapping[str, str] = field(default_factory=dict)
    """States of tasks by path; all others SUCCEEDED."""
    state: str = "SUCCEEDED"
    attempts: Mapping[str, int] = field(default_factory=dict)
    error: str = ""
    """Part of the error of a failed run."""
    warnings: tuple[str, ...] = ()
    """Parts of warnings of the run."""
    refused: str = ""
    """Part of the refusal; the file does not run here."""
    edit: Edit | None = None
    """Adds what kfp 2.17 does not write."""
    uses_cache: bool = False
    needs_index: bool = False
    """Whether its steps install packages from an index."""
    kfp_local: Any = None
    """Result of kfp.local, where it differs: other outputs (... for any), or text of its error."""
    is_vertex_only: bool = False
    """Whether kfp.local cannot load the file at all: a PipelineJob."""


CONSTRUCTS: dict[str, Construct] = {}


def construct(**expected: Any) -> Callable[[Any], Any]:
    """Register a pipeline function with what is expected of it, under its name."""

    def register(pipeline: Any) -> Any:
        name = pipeline.name.replace("-", "_")
        if name in CONSTRUCTS:
            raise ValueError(f"there are two constructs {name!r}")
        CONSTRUCTS[name] = Construct(pipeline=pipeline, **expected)
        return pipeline

    return register


def compiled_file(name: str) -> Path:
    """Return the compiled file of a construct: YAML where it has a second document."""
    path = FOLDER / f"{name}.json"
    return path if path.exists() else path.with_suffix(".yaml")


def documents(path: Path) -> list[dict[str, Any]]:
    """Return the one or two documents of a compiled file."""
    text = path.read_text()
    return [json.loads(text)] if path.suffix == ".json" else list(yaml.safe_load_all(text))
