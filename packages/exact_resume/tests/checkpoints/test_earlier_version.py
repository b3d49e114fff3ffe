"""A run that an earlier version finished, without seals, counts as finished."""

import contextlib
import json
import tarfile
from pathlib import Path

import pytest

from exact_resume.checkpoints import checkpoints, manifest, occupant
from exact_resume.checkpoints.result_file import is_finished
from vertex_testing.damage import flipped, readable

UNPROTECTED = ("best", "is_validated", "loss_scaling", "files")
"""Fields that no checksum of the earlier version covers; the files themselves are compared with the last one."""


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    """The checkpoint directory of a finished run without seals."""
    with tarfile.open(Path(__file__).parents[1] / "data" / "finished_run.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "finished_run"


def test_a_run_that_an_earlier_version_finished_is_finished(finished: Path) -> None:
    assert is_finished(str(finished), expected_run_id="6dbfa971a3a4046b")
    assert checkpoints.best(str(finished)).step == 2
    # Also without its result: the newest checkpoint is intact, and is that of the same run.
    (finished / "result.json").unlink()
    assert checkpoints.best(str(finished)).run_id == "6dbfa971a3a4046b"
    identity = occupant.identity_in(str(finished))
    assert identity
    assert identity["max_steps"] == 2


def test_no_flipped_bit_of_an_unsealed_manifest_makes_another_run_or_another_step_of_it(finished: Path) -> None:
    data = (finished / manifest.name(2) / manifest.MANIFEST_FILE).read_bytes()
    intact = manifest.verified(json.loads(data), 2)
    for value in readable(flipped(data)):
        with contextlib.suppress(manifest.TornCheckpoint):
            assert {**manifest.verified(value, 2), **{name: intact[name] for name in UNPROTECTED}} == intact
