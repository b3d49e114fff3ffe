"""dataset.json with a field missing or of another type is one line that names file and field."""

import json
from pathlib import Path
from typing import Any

import pytest

from localvertex._base.userinput.errors import UserError
from trainer.data import dataset

HOSTILE = [None, 3, -1, True, 0.5, "", "x", [], [3], {}, {"train": None}, {"train": -1, "validation": 1, "test": 1}]
"""No field accepts more than three of them."""
GONE = object()


def reason(directory: str) -> str:
    """Why a dataset is refused; empty if it is not."""
    try:
        dataset.load(directory)
    except UserError as error:
        return str(error)
    return ""


def write(source: Path, folder: Path, name: str, value: Any) -> str:
    content = json.loads((source / dataset.METADATA_FILE).read_text())
    if value is GONE:
        del content[name]
    else:
        content[name] = value
    (folder / dataset.METADATA_FILE).write_text(json.dumps(content))
    return str(folder)


@pytest.mark.parametrize("name", ["fingerprint", "class_names", "image_size", "num_examples", "shards", "statistics"])
def test_a_field_that_is_missing_or_of_another_type_is_named(digits_directory: Path, tmp_path: Path, name: str) -> None:
    reasons = {str(value): reason(write(digits_directory, tmp_path, name, value)) for value in HOSTILE}
    assert list(reasons.values()).count("") <= 3, reasons
    for text in filter(None, [*reasons.values(), reason(write(digits_directory, tmp_path, name, GONE))]):
        assert f"dataset.json': {name}" in text
        assert "\n" not in text
    assert "is missing" in reason(write(digits_directory, tmp_path, name, GONE))


def test_the_counts_are_those_of_the_classes(digits_directory: Path, tmp_path: Path) -> None:
    """Otherwise the report on a finished training would fail."""
    statistics = json.loads((digits_directory / dataset.METADATA_FILE).read_text())["statistics"]
    del statistics["counts"]["3"]
    assert "class '3' is in only one of class_names and statistics" in reason(
        write(digits_directory, tmp_path, "statistics", statistics)
    )


def test_a_shard_is_a_name_in_the_folder(digits_directory: Path, tmp_path: Path) -> None:
    shards = json.loads((digits_directory / dataset.METADATA_FILE).read_text())["shards"]
    shards["train"][0]["name"] = "../../elsewhere"
    with pytest.raises(UserError, match=r"shards\.train\[0\]\.name: unknown value"):
        dataset.load(write(digits_directory, tmp_path, "shards", shards))


@pytest.mark.parametrize("value", [*HOSTILE, GONE])
def test_no_field_of_a_shard_is_missing_or_of_another_type(digits_directory: Path, tmp_path: Path, value: Any) -> None:
    content = json.loads((digits_directory / dataset.METADATA_FILE).read_text())["shards"]
    fields = {
        "name": {"", "x"},
        "prefix": {""},
        "num_records": {"3"},
        "num_bytes": {"3"},
        "digest": {},
        "sha256": {},
        "crc32c": {},
    }
    assert fields.keys() == content["train"][0].keys()
    for field, allowed in fields.items():
        shard = {name: found for name, found in content["train"][0].items() if name != field}
        shard |= {} if value is GONE else {field: value}
        found = reason(write(digits_directory, tmp_path, "shards", {**content, "train": [shard]}))
        assert ("dataset.json': shards.train[0]" in found) != (str(value) in allowed), field


def test_a_dataset_of_an_earlier_version_is_refused_in_one_line(digits_directory: Path, tmp_path: Path) -> None:
    expected = r"^dataset '.*dataset.json' has format 1, expected 2; run prepare again$"
    with pytest.raises(UserError, match=expected):
        dataset.load(write(digits_directory, tmp_path, "format_version", 1))


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", "[" * 10_000, "\0"])
def test_a_file_that_is_no_object_is_damaged_and_not_missing(tmp_path: Path, text: str) -> None:
    (tmp_path / dataset.METADATA_FILE).write_text(text)
    with pytest.raises(UserError, match=r"dataset.json' is damaged: it is not a JSON object; run prepare again$"):
        dataset.load(str(tmp_path))
