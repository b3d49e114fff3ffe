"""A source is opened by what the user wrote; what cannot be opened is one line."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from localvertex._base.userinput.errors import UserError
from tests.trainer.data.sources.test_folder import names, write_image
from trainer.data.sources.factory import open_source


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("nowhere", "is not a folder (current folder: "),
        ("empty", "no images in"),
        ("single", "only one class in"),
        ("", "source is empty"),
        ("s3://bucket/images", "expected digits, tfds:NAME, a folder, a manifest, or gs://BUCKET/PATH"),
        ("tfds:no_such_data_set", "is not a dataset of TensorFlow Datasets"),
    ],
)
def test_mistakes_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, expected: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty" / "a").mkdir(parents=True)
    write_image(tmp_path / "single" / "only" / "1.png")
    with pytest.raises(UserError) as caught:
        open_source(source, str(tmp_path))
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_digits_are_1797_files_in_ten_folders(tmp_path: Path) -> None:
    source = open_source("digits", str(tmp_path))
    assert source.class_names == [str(digit) for digit in range(10)]
    assert len(names(source)) == 1797


def test_the_error_of_a_tfds_dataset_that_cannot_be_downloaded_has_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tfds = pytest.importorskip("tensorflow_datasets")

    class Unreachable(tfds.core.GeneratorBasedBuilder):
        VERSION = tfds.core.Version("1.0.0")

        def _info(self) -> Any:
            return self.dataset_info_from_configs(features=tfds.features.FeaturesDict({"label": np.int64}))

        def _split_generators(self, dl_manager: object) -> Any:
            raise OSError("no network")

        def _generate_examples(self) -> Any:
            raise NotImplementedError

    monkeypatch.setattr(tfds.core.constants, "DATA_DIR", str(tmp_path))
    with pytest.raises(UserError, match=r"cannot be downloaded.*TFDS_DATA_DIR"):
        open_source("tfds:unreachable", str(tmp_path))
