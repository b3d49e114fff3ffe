"""Find the commands that need a container image: they are not Python code of this machine.

This Python with a module or a script that is here, and a Python component of kfp, is a process as before.
"""

import os

from localvertex.containers.choice import Choice
from localvertex.containers.programs import is_own_python, missing

_COMPONENT = "ephemeral_component"
"""Module in the command of a Python component that `create_custom_training_job_from_component` has wrapped."""


def is_foreign_command(words: tuple[str, ...], env: dict[str, str], choice: Choice) -> bool:
    """Return whether a command is not Python code of this machine."""
    if not words:
        return True
    if any(_COMPONENT in word for word in words):
        return False
    # With an engine, Python code that is not here may be in the image.
    return not is_own_python(words[0]) or bool(choice.options.engine and missing([*words], os.path.exists, env))


def problem_of_command(words: tuple[str, ...], env: dict[str, str], choice: Choice) -> str:
    """Return why a command cannot run here; empty when it can, or when only the run can decide."""
    if any(_COMPONENT in word for word in words):
        return ""
    if not is_foreign_command(words, env, choice):
        return missing([*words], os.path.exists, env)
    if choice.how.problem or choice.how.runs_images:
        return choice.how.problem
    return missing([*words], choice.shows, env)
