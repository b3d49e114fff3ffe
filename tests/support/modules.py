"""The trainer's programs, `python -m NAME`, as processes or called in this one, outside any Vertex AI job."""

import functools
import importlib
import os
import subprocess
import sys
from pathlib import Path

from trainer import command_line
from vertex_testing.in_process import call


def start_module(module: str, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
    """Start `python -m module` without the variables that Vertex AI sets."""
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        env={**variables(), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_module(module: str, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run `python -m module` to its end."""
    process = start_module(module, *arguments, **environment)
    stdout, stderr = process.communicate(timeout=300)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)


def call_module(module: str, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Call the `main` of `python -m module` in this process; not for training, which configures TensorFlow for good."""
    main = importlib.import_module(module).main
    return call(
        lambda words: command_line.run(functools.partial(main, words)),
        arguments,
        cwd=Path.cwd(),
        environment={**variables(), **environment},
        program=module,
    )


def variables() -> dict[str, str]:
    """Return the variables of this process without those that Vertex AI sets."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("AIP_", "TF_CONFIG", "CLUSTER_"))}
