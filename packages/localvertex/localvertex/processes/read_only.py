"""A view of this machine in which the user's packages cannot be changed; it requires bubblewrap.

It is for steps and replicas with their own environment, which install packages anyway. Everything else is as
outside: bubblewrap only mounts these folders read-only.
"""

import site
import subprocess
import sys
from functools import cache
from pathlib import Path

from localvertex.processes import in_sandbox
from localvertex_base import linux

STARTER = ("sh", "-c", 'trap "" TERM INT HUP; exec "$@"', "sh")
"""Starts bubblewrap so that signals do not end it: the command inside decides within its grace time."""

_MAX_PROBE_SECONDS = 30


@cache
def view() -> tuple[str, ...]:
    """Return the words that start a command in this view; empty where bubblewrap cannot run."""
    program = linux.bubblewrap()
    if program is None:
        return ()
    words = (program, "--dev-bind", "/", "/", *(word for path in _folders() for word in ("--ro-bind", path, path)))
    try:
        done = subprocess.run([*words, "true"], capture_output=True, timeout=_MAX_PROBE_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return ()
    return words if done.returncode == 0 else ()


def prepared(words: list[str], env: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return the command that runs another one in this view, and the variables to start it with."""
    if not view():
        return words, env
    inner = [sys.executable, "-I", "-S", in_sandbox.__file__, *words]
    return [*STARTER, *view(), "--", *inner], in_sandbox.carried(env)


def _folders() -> list[str]:
    """Return the folders of the user's packages and programs."""
    packages = {each for each in (*sys.path, *site.getsitepackages(), site.getusersitepackages())}
    found = {each for each in packages if each.endswith("-packages")}
    found |= {str(Path(prefix) / "bin") for prefix in (sys.prefix, sys.base_prefix) if prefix not in ("/usr", "/")}
    return sorted(each for each in found if Path(each).is_dir())
