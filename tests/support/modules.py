"""Programs of the product as processes: `python -m NAME`, outside any job of Vertex AI."""

import os
import subprocess
import sys


def start_module(module: str, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
    """Start `python -m module` without the variables that Vertex AI sets."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIP_", "TF_CONFIG", "CLUSTER_"))}
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        env={**kept, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_module(module: str, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run `python -m module` to its end."""
    process = start_module(module, *arguments, **environment)
    stdout, stderr = process.communicate(timeout=300)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)
