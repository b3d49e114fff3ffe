"""Opening a prepared dataset: also one that an older version of this project wrote."""

import json
import tarfile
from pathlib import Path

import pytest

from trainer.data import dataset
from trainer.data.splits import SPLITS
from vertex_gpu_training.userinput.errors import UserError


def test_a_folder_that_is_not_a_dataset_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no prepared dataset"):
        dataset.load(str(tmp_path))
    (tmp_path / "dataset.json").write_text(json.dumps({"format_version": 99}))
    with pytest.raises(UserError, match="format 99, expected 1; run prepare again"):
        dataset.load(str(tmp_path))


def test_a_dataset_of_an_older_version_is_read(repository: Path, tmp_path: Path) -> None:
    with tarfile.open(repository / "tests" / "data" / "earlier_version" / "killed_run.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    data = dataset.load(str(tmp_path / "dataset"))
    assert data.fingerprint == "bae585938b0ad7e1d787d272946ba1cba194b2c847ca707c74fd9b374d60d18b"
    for split in SPLITS:
        records = list(data.records(split))
        assert len(records) == data.num_examples[split] > 0
        assert {record.pixels().shape for record in records} == {(data.image_size, data.image_size, 3)}
        assert {record.file_name.split("/")[0] for record in records} <= set(data.class_names)
