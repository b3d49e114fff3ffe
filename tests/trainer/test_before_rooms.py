"""A run that was killed under an older version of this project resumes and ends as if nothing had happened."""

import json
import tarfile
from pathlib import Path

from tests.support.modules import run_module

NAMES = ("run_id", "final_step", "batch_digests")


def test_a_killed_run_of_an_older_version_resumes_with_the_same_batches(repository: Path, tmp_path: Path) -> None:
    with tarfile.open(repository / "tests" / "data" / "before_rooms" / "killed_run.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    folders = [f"--dataset={tmp_path / 'dataset'}", f"--checkpoint-directory={tmp_path / 'checkpoints'}"]
    config = ["--epochs=5", "--global-batch-size=16", "--learning-rate=0.003"]
    done = run_module("trainer.task", *folders, *config, "--exact")
    assert done.returncode == 0, done.stderr
    assert " at step 12 " in done.stdout
    expected = json.loads((tmp_path / "uninterrupted.json").read_text())
    result = json.loads((tmp_path / "checkpoints" / "result.json").read_text())
    assert {name: result[name] for name in NAMES} == {name: expected[name] for name in NAMES}
    assert result["num_restarts"] == 1
