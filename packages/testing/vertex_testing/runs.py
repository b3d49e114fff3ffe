"""Shared by the tests of `localvertex`: the types of their fixtures, and the settings of their components."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vertex_testing.forks import Process

STEP = {"base_image": "python:3.11", "install_kfp_package": False}
"""Arguments of `@dsl.component` for a step that installs nothing."""

Record = dict[str, Any]
"""The content of run.json."""

Compile = Callable[..., Path]
"""Takes a pipeline function and, optionally, a file name; returns the path of the compiled file."""

Execute = Callable[..., Record]
"""Takes a pipeline function or a file, parameters and options of the run; returns its record."""

FindTask = Callable[[Record, str], dict[str, Any]]
"""Takes a record and the name or path of a task; returns the task's entry."""

ReadLog = Callable[[Record, dict[str, Any]], str]
"""Takes a record and the entry of a task; returns the task's log."""

Command = Callable[..., subprocess.CompletedProcess[str]]
"""Takes arguments of `python -m localvertex`; returns what a shell would see."""

StartRun = Callable[..., Process]
"""Takes a pipeline function, and options and variables of `run`; returns the process of the run `stopped`.

Without a function, the options resume a run.
"""
