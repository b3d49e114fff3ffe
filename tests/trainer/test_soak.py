"""The soak on a small source: despite kills at random moments, the datasets have the bytes of a full run."""

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
