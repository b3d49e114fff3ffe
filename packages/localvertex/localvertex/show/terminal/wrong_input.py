"""A run that failed because a parameter is wrong: which one, and the command that runs the pipeline with another value.

Resuming such a run would fail again, because its parameters are part of it.
"""

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from localvertex._base.compiled.load import load
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex.store import run_folder
from localvertex.store.steps.failure import WRONG_INPUT

_PLACEHOLDER = "VALUE"

_MIN_CHARACTERS = 4
"""Length of a value by which a parameter is found; shorter values are in many texts."""

_DEFAULTS = {"project": "local-project", "region": "us-central1"}


def parameter_of(content: JsonObject) -> str:
    """Return the parameter that the first failed step rejects; empty if it failed otherwise, or names none.

    Args:
        content: The record.
    """
    failed = next((each for each in content.get("tasks", ()) if each["path"] == content.get("failed_task")), None)
    if failed is None or failed["exit_code"] != WRONG_INPUT:
        return ""
    error = failed["error"] or ""

    def rank(name: str) -> tuple[bool, int] | None:
        value = content["parameters"][name]
        has_value = isinstance(value, str) and len(value) >= _MIN_CHARACTERS and value in error
        named = re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", error)
        # A message begins with what is wrong.
        return (not (has_value and named), named.start() if named else len(error)) if has_value or named else None

    ranks = {name: found for name in content["parameters"] if (found := rank(name)) is not None}
    return min(ranks, key=ranks.__getitem__, default="")


def command(content: JsonObject, wrong: str, program: list[str]) -> list[str]:
    """Return the words of the command that runs the same file with another value of a parameter.

    Args:
        content: The record.
        wrong: The parameter.
        program: The words that call localvertex.
    """
    file, given = Path(content["file"]), JsonObject()
    with suppress(UserError):
        copy = run_folder.pipeline_copy(Path(content["work_dir"]) / content["run_id"])
        # A file that a server received has no path here.
        file = file if file.is_file() else copy
        pipeline = load(copy).pipeline
        given = {name: each.default for name, each in pipeline.root.input_parameters.items()} | pipeline.job.parameters
    words = [*program, "run", str(file), "--work-dir", content["work_dir"]]
    for name, value in content["parameters"].items():
        if name == wrong:
            words += ["--parameter", f"{name}={_PLACEHOLDER}"]
        elif value is not None and given.get(name) != value:
            words += ["--parameter", f"{name}={_word(value)}"]
    for name, artifacts in content.get("input_artifacts", {}).items():
        words += [word for each in artifacts for word in ("--input-artifact", f"{name}={each['uri']}")]
    words += [f"--{name}={content[name]}" for name, default in _DEFAULTS.items() if content[name] != default]
    if (config := content["configuration"].get("file")) and Path(config).is_file():
        words += ["--config", config]
    return [*words, *content["resume_options"]]


def _word(value: Any) -> str:
    """Return a value as an option has it: texts as they are, but an @ at the beginning doubled."""
    if not isinstance(value, str):
        return json.dumps(value)
    return f"@{value}" if value.startswith("@") else value
