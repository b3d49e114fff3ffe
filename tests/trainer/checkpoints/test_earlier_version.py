"""A run of an earlier version of the trainer that was killed resumes."""

import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from exact_resume.checkpoints import checkpoints
from exact_resume.events import log as event_log
from exact_resume.files import bucket
from tests.support.modules import run_module
from trainer.data.dataset import FORMAT_VERSION, METADATA_FILE

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
    _describe_as_format_2(tmp_path / "dataset")
    return tmp_path


def _describe_as_format_2(folder: Path) -> None:
    """Let this version read the dataset of format 1 that the run was trained on, with its fingerprint and order.

    Training reads only the images and labels of its records, which are the same in both formats.
    """
    content = json.loads((folder / METADATA_FILE).read_text())
    for split, names in content["shards"].items():
        content["shards"][split] = [
            {
                "name": name,
                "prefix": "",
                "num_records": content["num_examples"][split],
                "num_bytes": (folder / name).stat().st_size,
                "digest": "0" * 64,
                "sha256": hashlib.sha256((folder / name).read_bytes()).hexdigest(),
                "crc32c": bucket.crc32c(str(folder / name)),
            }
            for name in names
        ]
    (folder / METADATA_FILE).write_text(json.dumps(content | {"format_version": FORMAT_VERSION}))


def test_a_checkpoint_of_an_earlier_version_resumes_and_ends_as_the_uninterrupted_run(killed: Path) -> None:
    folder = killed / "checkpoints"
    # Step 8 was being removed when the run was killed: it has no manifest any more.
    assert checkpoints.steps(str(folder)) == [12, 5]
    uninterrupted = json.loads((killed / "uninterrupted.json").read_text())
    words = [f"--dataset={killed / 'dataset'}", f"--checkpoint-directory={folder}", *FLAGS]
    # Its lease does not name its holder, so it is watched, here for a second.
    done = run_module("tests.support.short_lease", "10", "1", "--", *words)
    assert done.returncode == 0, done.stderr
    assert "resuming at step 12" in done.stdout
    assert [event["step"] for event in event_log.read(str(folder)) if event["event"] == "restore"] == [12]
    result = json.loads((folder / "result.json").read_text())
    assert result["final_step"] == 25
    assert len(result["batch_digests"]) == 25
    for name in ("run_id", "final_step", "batch_digests"):
        assert result[name] == uninterrupted[name]
