"""Opening a folder that is not a prepared dataset, or one of another version."""

import json
from pathlib import Path

import pytest

from localvertex._base.userinput.errors import UserError
from trainer.data import dataset


def test_a_folder_that_is_not_a_dataset_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no prepared dataset"):
        dataset.load(str(tmp_path))
    (tmp_path / "dataset.json").write_text(json.dumps({"format_version": 99}))
    with pytest.raises(UserError, match="format 99, expected 2; run prepare again"):
        dataset.load(str(tmp_path))
