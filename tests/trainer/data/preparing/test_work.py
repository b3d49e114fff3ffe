"""Work on several machines: the same files as by one, also when workers do everything twice, and in a bucket."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.support.cloud_storage.server import CloudStorage
from trainer import prepare
from trainer.data.preparing import parts, work
from trainer.data.preparing.engines import exchange, factory
from trainer.data.preparing.engines.beam import Beam
from vertex_gpu_training.userinput.errors import UserError


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with some images of two classes, one of them twice, and one that is none."""
    pixels = np.random.default_rng(0).integers(0, 256, (40, 12, 9, 3), dtype=np.uint8)
    for number in range(40):
        path = tmp_path / "source" / f"class-{number % 2}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels[number // 2 * 2 if number < 2 else number]).save(path)
    (tmp_path / "source" / "class-0" / "none.png").write_bytes(b"none")
    return tmp_path / "source"


def run(source: Path | str, output: Path, **options: Any) -> dict[str, Any]:
    page = output.with_suffix(".html")
    return prepare.prepare(
        source=str(source), output_directory=str(output), report_path=str(page), image_size=16, **options
    )


def files(folder: Path) -> dict[str, bytes]:
    """The content of each file of a dataset, and its report."""
    paths = [*sorted(folder.iterdir()), folder.with_suffix(".html")]
    return {path.name.replace(folder.name, "output"): path.read_bytes() for path in paths}


def everything_twice(folder: str) -> None:
    """Do each item of work in two threads at the same time, and some of them once more."""
    names = exchange.missing(folder)
    together = threading.Barrier(2)

    def do_all() -> None:
        for name in names:
            together.wait()
            exchange.work(folder, name)

    other = threading.Thread(target=do_all)
    other.start()
    do_all()
    other.join()
    exchange.work(folder, names[-1])


@pytest.mark.parametrize("place", ["local", "bucket"])
def test_bundles_that_run_twice_change_nothing(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, server: CloudStorage
) -> None:
    del server
    expected = run(source, tmp_path / "local")
    monkeypatch.setattr(parts, "MAX_IMAGES", 7)
    monkeypatch.setattr("trainer.data.preparing.prefixes.TARGET_BYTES", 8000)
    whole = run(source, tmp_path / "many")
    assert len(files(tmp_path / "many")) > len(files(tmp_path / "local")) + 3
    folder = str(tmp_path / "work") if place == "local" else "gs://b/work"
    monkeypatch.setattr(factory, "make", lambda *_: Beam(folder, everything_twice))
    files_of_parts = work.PartsFile
    monkeypatch.setattr(work, "PartsFile", lambda _: files_of_parts(folder))
    assert run(source, tmp_path / "twice", prepare_engine="dataflow", beam_runner="FnApiRunner") == whole
    assert files(tmp_path / "twice") == files(tmp_path / "many")
    assert whole == expected


def test_images_without_a_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^source 'digits' has no files that other machines can read; use prepare_eng"):
        run("digits", tmp_path / "out", prepare_engine="dataflow", beam_runner="FnApiRunner")
    assert list(tmp_path.iterdir()) == []
