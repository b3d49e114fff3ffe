"""The format number of prepared data: it changes with the bytes, and not with the source text."""

import gzip
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from trainer.data.preparing import versions
from trainer.prepare import prepare

GOLDEN = {3: "35058d2cded1c2f6", 4: "4409282d8927c711", 5: "1a004e9dc756688e", 6: "1a004e9dc756688e"}
"""By format number: the digest of all files of the dataset below; 6 packs the list of images in another way."""


@pytest.fixture
def source(tmp_path: pathlib.Path) -> pathlib.Path:
    """Images of all kinds that reach another branch of the code; lossless, so that no decoder matters."""
    folder = tmp_path / "source"
    random = np.random.default_rng(0)
    for label in ("circle", "square"):
        (folder / label).mkdir(parents=True)
        for number in range(12):
            pixels = random.integers(0, 256, (20 + number, 24, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / label / f"{number:02}.png")
    first = Image.open(folder / "circle" / "00.png")
    first.save(folder / "circle" / "copy.bmp")
    first.save(folder / "square" / "same pixels.png")
    first.transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(folder / "circle" / "mirrored.png")
    first.convert("L").save(folder / "circle" / "grey.png")
    first.convert("RGBA").save(folder / "square" / "alpha.png")
    first.convert("P").save(folder / "square" / "palette.png")
    Image.new("RGB", (64, 64), (9, 9, 9)).save(folder / "square" / "empty.png")
    (folder / "square" / "damaged.png").write_bytes((folder / "circle" / "00.png").read_bytes()[:200])
    return folder


def test_the_format_number_changes_with_the_bytes(source: pathlib.Path, tmp_path: pathlib.Path) -> None:
    root = tmp_path / "root"
    prepare(
        source=str(source),
        output_directory=str(tmp_path / "dataset"),
        report_path=str(tmp_path / "report.html"),
        image_size=16,
        pipeline_root=str(root),
    )
    digest = hashlib.sha256()
    for path in sorted((tmp_path / "dataset").iterdir()):
        data = path.read_bytes().replace(str(source).encode(), b"")
        if path.suffix == ".gz":
            # Times and inodes differ for each copy of the source.
            data = re.sub(rb'"(ctime_ns|inode|mtime_ns)": \d+', rb'"\1": 0', gzip.decompress(data))
        digest.update(path.name.encode() + data)
    assert GOLDEN[versions.FORMAT] == digest.hexdigest()[:16], (
        "the bytes of a prepared dataset have changed: raise FORMAT in trainer/data/preparing/versions.py, and enter"
        f" their digest here: {digest.hexdigest()[:16]}"
    )


@pytest.mark.slow
def test_a_comment_in_the_source_rereads_nothing(
    repository: pathlib.Path, source: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    shutil.copytree(repository / "trainer", tmp_path / "code" / "trainer", ignore=shutil.ignore_patterns("__pycache__"))
    notes = []
    for attempt in ("first", "second"):
        words = [sys.executable, "-m", "trainer.prepare", str(source), str(tmp_path / attempt), "--image-size=16"]
        words += [f"--report={tmp_path / attempt}.html", f"--pipeline-root={tmp_path / 'root'}"]
        done = subprocess.run(
            words,
            cwd=tmp_path / "code",
            env={**os.environ, "PYTHONPATH": str(tmp_path / "code")},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        notes.append(done.stdout + done.stderr)
        for path in (tmp_path / "code" / "trainer" / "data").rglob("*.py"):
            path.write_text(path.read_text() + "\n# A remark.\n")
    assert "32 images read" in notes[0]
    assert ": 0 images read" in notes[1]
