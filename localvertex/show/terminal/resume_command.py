"""The command that resumes a run, ready to paste into the shell that started it."""

import json
import os
import shlex
import shutil
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from localvertex.processes.sinks import MASK

_FIXED = {"file", "resume", "work_dir", "run_id", "parameter", "parameter_file", "input_artifact", "project", "region"}
"""Arguments whose values are stored in the run."""

_NOT_REPEATED = {"command", "parser", "fault", "faults", "seed"}
"""A fault belongs to one start: a resumed run must not be stopped again."""


def sentence(content: dict[str, Any], options: Namespace, parser: ArgumentParser) -> str:
    """Return the last line of the output of a run that has not succeeded.

    Args:
        content: The record.
        options: How the run was started; the command repeats what is not a default.
        parser: The parser of the command `run`.
    """
    if MASK in json.dumps(content["parameters"], default=str):
        return "cannot be resumed, because a secret in its parameters is not stored; run the file again"
    words = [*_program(), "run", "--resume", content["run_id"], "--work-dir", str(Path(content["work_dir"]))]
    for name, value in vars(options).items():
        if name not in _FIXED | _NOT_REPEATED and value != parser.get_default(name):
            words += _option(name, value)
    return f"resume: {shlex.join(words)}"


def _option(name: str, value: Any) -> list[str]:
    """Return an option as words; a value may begin with `-`."""
    flag = f"--{name.replace('_', '-')}"
    if value is True:
        return [flag]
    values = value if isinstance(value, list) else [value]
    return [f"{flag}={each.absolute() if isinstance(each, Path) else each}" for each in values]


def _program() -> list[str]:
    """Return how this program was called: its script, or this Python and the module."""
    script = Path(sys.argv[0])
    if script.name == "localvertex" and script.is_file():
        return [_short(script)]
    return [_short(Path(sys.executable)), "-m", "localvertex"]


def _short(program: Path) -> str:
    """Return a program's name if the shell finds it, otherwise its path. Links are kept: a venv's Python is one."""
    path, found = os.path.abspath(program), shutil.which(program.name)
    return program.name if found and os.path.abspath(found) == path else path
