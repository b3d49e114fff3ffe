"""Runs change the champion of a model one after the other."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from components.release.succession import in_turn
from exact_resume.checkpoints.lease import Lease
from exact_resume.files import versioned

MODEL = "projects/p/locations/r/models/7"


def test_a_run_that_lost_the_race_for_the_turn_of_a_dead_run_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "training" / "champions" / "7"
    other = Lease(str(folder), f"{MODEL}@1")
    other.take({})
    other.release(has_checkpoint=True)
    (file,) = folder.iterdir()
    content, replace, num_calls = file.read_bytes(), versioned.replace, 0

    def and_the_other_too(*args: Any) -> versioned.FileVersion:
        nonlocal num_calls
        num_calls += 1
        found = replace(*args)
        if num_calls == 1:
            file.write_bytes(content)
        return found

    monkeypatch.setattr(versioned, "replace", and_the_other_too)
    registry: Any = SimpleNamespace(root=str(tmp_path))
    with in_turn(registry, f"{MODEL}@2") as lease:
        lease.check()
    assert num_calls == 2
