"""The soaks with a few faults: datasets and trained models are those of undisturbed runs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.modules import run_module


@pytest.mark.slow
def test_random_kills_change_no_byte_and_leave_nothing(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)
    done = run_module("benchmarks.soak", "--num-images=3000", "--num-kills=5", "--seed=1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("5 kills, ")
    assert " with 0 faults; " in done.stdout


@pytest.mark.slow
def test_random_faults_change_no_weight(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)
    command = [sys.executable, "-m", "benchmarks.soak", "training", "--num-faults=4", "--seed=1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r": [4-6] faults in \d+ runs, (\d+) ended as the undisturbed run, 0 did not; ", done.stdout)
    assert "| two workers |" in done.stdout
