"""Programs on a real disk that is soon full."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

RunOnDisk = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_on_disk(tmp_path: Path) -> RunOnDisk:
    """Run a program with a disk of 400 kB at its first argument."""
    mounted = f"mount -t tmpfs -o size=400k none {tmp_path}"
    tried = ["unshare", "-rm", "sh", "-c", mounted]
    if shutil.which("unshare") is None or subprocess.run(tried, check=False, capture_output=True).returncode:
        pytest.skip("needs a namespace in which a small disk can be mounted")

    def run(program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        command = f'{mounted} && exec "$@"'
        words = [sys.executable, "-c", program, str(tmp_path), *arguments]
        return subprocess.run(
            ["unshare", "-rm", "sh", "-c", command, "sh", *words],
            check=False,
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run
