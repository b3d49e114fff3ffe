"""The command that resumes a run, or runs it with another parameter, ready to paste into the shell that started it."""

import json
import shlex
import sys
from pathlib import Path

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.cli import command_word
from localvertex._base.userinput.spelling import quote
from localvertex.processes.sinks import MASK
from localvertex.show.terminal import wrong_input


def sentence(content: JsonObject) -> str:
    """Return the last line of the output for a run that has not succeeded.

    Args:
        content: The record.
    """
    if MASK in json.dumps(content["parameters"], default=str):
        return "cannot be resumed, because a secret in its parameters is not stored; run the file again"
    if wrong := wrong_input.parameter_of(content):
        words = wrong_input.command(content, wrong, _program())
        return f"correct {wrong}, now {quote(content['parameters'][wrong])}, and run again: {shlex.join(words)}"
    return f"resume: {command(content, _program())}"


def command(content: JsonObject, program: list[str]) -> str:
    """Return the command, with the options of the run that are not defaults.

    Args:
        content: The record.
        program: The words that call localvertex.
    """
    words = [*program, "run", "--resume", content["run_id"], "--work-dir", content["work_dir"]]
    return shlex.join([*words, *content["resume_options"]])


def _program() -> list[str]:
    """Return how this program was called: its script, or this Python and the module."""
    script = Path(sys.argv[0])
    if script.name == "localvertex" and script.is_file():
        return [command_word(str(script))]
    return [command_word(sys.executable), "-m", "localvertex"]
