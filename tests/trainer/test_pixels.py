"""Serving, `predict` and batch prediction see the pixels that training sees, bit for bit, whatever the file is."""

import asyncio
import base64
import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.support import odd_files
from trainer.data import dataset as datasets, images
from trainer.data.examples import load_split
from trainer.data.preparing.read import Examined, examine
from trainer.prepare import prepare
from trainer.results.batch import instances
from trainer.serve import requests

FILES = {
    f"{number:03}.{odd_files.ENDINGS[kind]}": (f"{kind}, {name}", data)
    for number, (kind, name, data) in enumerate(
        (kind, name, data) for kind, found in odd_files.made().items() for name, data in found.items()
    )
}
"""File name -> (what it is, its bytes)."""


def trained_on(folder: Path, image_size: int) -> dict[str, npt.NDArray[np.uint8]]:
    """Return file name -> pixels that training, evaluation and test read from the dataset."""
    prepare(
        source=str(folder / "source"),
        output_directory=str(folder / "dataset"),
        report_path=str(folder / "report.html"),
        image_size=image_size,
    )
    data, found = datasets.load(str(folder / "dataset")), {}
    for split in data.num_examples:
        pixels = load_split(data, split).gather(np.arange(data.num_examples[split]))[0]
        names = [record.file_name for record in data.records(split)]
        found |= dict(zip((name.rpartition("/")[2] for name in names), np.asarray(pixels), strict=True))
    return found


@pytest.mark.parametrize("image_size", [32, 96, 224])
def test_odd_files_are_served_with_the_pixels_of_training(tmp_path: Path, image_size: int) -> None:
    assert len(FILES) >= 40
    for label in ("a", "b"):
        (tmp_path / "source" / label).mkdir(parents=True)
    for number, (name, (_, data)) in enumerate(FILES.items()):
        (tmp_path / "source" / "ab"[number % 2] / name).write_bytes(data)
    trained = trained_on(tmp_path, image_size)
    assert trained.keys() == FILES.keys()
    written = instances.write(
        source=str(tmp_path / "source"),
        image_size=image_size,
        directory=str(tmp_path / "instances"),
        uri="gs://bucket/instances",
        bad_images_path=str(tmp_path / "bad"),
        max_bad_fraction=0,
    )
    lines = [json.loads(line) for path in (tmp_path / "instances").iterdir() for line in path.read_text().splitlines()]
    in_batches = {line["file_name"].rpartition("/")[2]: {"b64": line["b64"]} for line in lines}
    assert written.num_images == len(in_batches) == len(FILES)
    for ways in (
        {name: {"b64": base64.b64encode(data).decode()} for name, (_, data) in FILES.items()},
        in_batches,
        # As the trial of the export and the live prediction send them.
        {
            record.file_name.rpartition("/")[2]: {"b64": base64.b64encode(record.image_bytes).decode()}
            for split in ("train", "validation", "test")
            for record in datasets.load(str(tmp_path / "dataset")).records(split)
        },
    ):
        parsed = asyncio.run(requests.parse(json.dumps({"instances": list(ways.values())}).encode(), image_size))
        served = [decode() for decode in parsed]
        different = [
            f"{FILES[name][0]}: {int(np.abs(pixels.astype(int) - trained[name]).max())} levels"
            for name, pixels in zip(ways, served, strict=True)
            if not np.array_equal(pixels, trained[name])
        ]
        assert different == []


def test_a_stored_image_is_not_encoded_again() -> None:
    """Otherwise neither the trial of an export nor a live prediction could agree with `evaluate`."""
    stored = images.encode_image(images.stretch(odd_files.photo(), 96))
    kept = images.stored_form(stored, images.stretch(images.decode(stored), 96))
    assert kept == stored
    # Earlier versions stored the comment of the original, too.
    earlier = odd_files.encoded(
        images.stretch(odd_files.photo(), 96), "JPEG", quality=95, subsampling=0, comment=b"by hand"
    )
    assert images.stored_form(earlier, images.stretch(images.decode(earlier), 96)) == earlier
    # Stored at another size, with a comment, or followed by more, it is a file like others.
    for data, size in ((stored, 100), (odd_files.with_segments(stored, (0xE5, b"x")), 96), (stored + b"\n", 96)):
        prepared = images.stretch(images.decode(data), size)
        assert images.stored_form(data, prepared) == images.encode_image(prepared) != data


def test_the_comment_of_a_file_is_not_stored() -> None:
    """Pillow copies it, and fails above 65,533 bytes."""
    data = odd_files.encoded(odd_files.photo(), "GIF", comment=b"secret " * 10_000)
    found = examine(data, 96)
    assert isinstance(found, Examined)
    assert b"secret" not in found.stored
