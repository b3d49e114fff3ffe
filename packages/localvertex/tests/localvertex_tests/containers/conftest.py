"""The sandbox, where it can run, and a container engine that notes its calls."""

import os
import sys
from pathlib import Path

import pytest

from localvertex.containers.choice import Choice


@pytest.fixture
def sandbox() -> None:
    """Skip a test where bubblewrap is not installed or cannot run."""
    if problem := Choice().how.problem:
        pytest.skip(problem)


_DOCKER = """\
#!{python}
import json, os, sys
arguments, env = sys.argv[1:], dict(os.environ)
with open({calls!r}, "a") as file:
    file.write(json.dumps({{"arguments": arguments, "env": env}}) + "\\n")
if arguments[0] != "run":
    sys.exit({code})
options, words = {{"--env": []}}, arguments[1:]
while words[0].startswith("--"):
    name = words.pop(0)
    if name not in ("--rm", "--init"):
        value = words.pop(0)
        options[name] = [*options[name], value] if name == "--env" else value
image, words = words[0], words[1:]
inner = {{each.partition("=")[0]: each.partition("=")[2] if "=" in each else env[each] for each in options["--env"]}}
command = [*filter(None, [options.get("--entrypoint")]), *words] or ["echo", "entry point of", image]
# A real container has its image's folder and programs.
os.chdir({folder!r})
os.execvpe(command[0], command, {{"PATH": os.defpath}} | inner)
"""


def install_engine(folder: Path, name: str, *, code: int = 0, in_folder: Path | None = None) -> Path:
    """Write a program that notes its calls in calls.jsonl and runs the commands of its containers."""
    folder.mkdir(exist_ok=True)
    text = _DOCKER.format(
        python=sys.executable, calls=str(folder / "calls.jsonl"), code=code, folder=str(in_folder or folder)
    )
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a `docker` in front of PATH; its containers start in the folder of the step `hold`, if there is one."""
    step = tmp_path / "runs" / "stopped" / "hold"
    folder = install_engine(tmp_path / "engine", "docker", in_folder=step)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder
