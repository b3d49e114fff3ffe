"""A run that an earlier version of the trainer started, ended by SIGKILL, resumes with today's trainer."""

import json
import tarfile
from pathlib import Path

import pytest

from tests.support.modules import run_module
from trainer.checkpoints import checkpoints
from trainer.files import event_log

FLAGS = [
    "--epochs=5",
    "--global-batch-size=16",
    "--checkpoint-every-steps=4",
    "--keep-checkpoints=1",
    "--learning-rate=0.003",
    "--exact",
]


@pytest.fixture
def killed(repository: Path, tmp_path: Path) -> Path:
    """The dataset, the checkpoint directory of the killed run, and the result of the same run without interruption."""
    with tarfile.open(repository / "tests" / "data" / "earlier_version" / "killed_run.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def test_a_checkpoint_of_an_earlier_version_resumes_and_ends_as_the_uninterrupted_run(killed: Path) -> None:
    folder = killed / "checkpoints"
    # Step 8 was being removed when the run was killed: it has no manifest any more.
    assert checkpoints.steps(str(folder)) == [12, 5]
    uninterrupted = json.loads((killed / "uninterrupted.json").read_text())
    done = run_module("trainer.task", f"--dataset={killed / 'dataset'}", f"--checkpoint-directory={folder}", *FLAGS)
    assert done.returncode == 0, done.stderr
    assert "resuming at step 12" in done.stdout
    assert [event["step"] for event in event_log.read(str(folder)) if event["event"] == "restore"] == [12]
    result = json.loads((folder / "result.json").read_text())
    assert result["final_step"] == 25
    assert len(result["batch_digests"]) == 25
    for name in ("run_id", "final_step", "batch_digests"):
        assert result[name] == uninterrupted[name]
