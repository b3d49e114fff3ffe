"""A server removes what a killed one left half-written, and nothing else."""

import os
from pathlib import Path

from localvertex._base.userinput import atomic_write
from localvertex.api.rest.store import Store
from localvertex.store import record


def test_a_server_removes_what_a_killed_one_left_half_written(tmp_path: Path) -> None:
    below = tmp_path / "api" / "tensorboards" / "1" / "experiments"
    below.mkdir(parents=True)
    kept = [below / ".a.json.mine.partial", below / "b.json", tmp_path / ".c.json.0123abcd.partial"]
    for path in [*kept, below / ".a.json.0123abcd.partial", tmp_path / "api" / ".d.json.0123abcd.partial"]:
        path.touch()
    left = tmp_path / record.PRIVATE / ".new.0123abcd.partial"
    left.mkdir(parents=True)
    with atomic_write.folder(below / "e.json") as in_use, Store(tmp_path).hold():
        assert in_use.is_dir()
        assert len(os.listdir(below)) == 3
        assert all(path.exists() for path in kept)
        assert not left.exists()
