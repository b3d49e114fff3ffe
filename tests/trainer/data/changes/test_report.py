"""The page of `prepare`: it compares with the previous dataset, changes no byte of this one, and never fails it."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from exact_resume.files import storage
from trainer.data import changes
from trainer.prepare import prepare


def folder(root: Path) -> Path:
    """Write a source of two classes."""
    draw = np.random.default_rng(0)
    for label in ("a", "b"):
        (root / label).mkdir(parents=True)
        for number in range(8):
            Image.fromarray(draw.integers(0, 256, (10, 12, 3), dtype=np.uint8)).save(root / label / f"{number}.png")
    return root


def run(source: Path, output: Path, **options: Any) -> dict[str, Any]:
    """Prepare a source at 16x16 pixels and return the figures of the page."""
    metrics: dict[str, Any] = {}
    prepare(
        source=str(source),
        output_directory=str(output),
        report_path=f"{output}.html",
        image_size=16,
        changes_path=f"{output}.changes.html",
        change_metrics=metrics,
        **options,
    )
    return metrics


def content(output: Path) -> dict[str, bytes]:
    """The files of a dataset and its report."""
    report = Path(f"{output}.html")
    return {path.name: path.read_bytes() for path in sorted(output.iterdir())} | {"report": report.read_bytes()}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of two classes."""
    made = tmp_path_factory.mktemp("prepared")
    assert run(folder(made / "source"), made / "one") == {}
    return made / "one"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A source of two classes, prepared as `one` before an image was added."""
    made = folder(tmp_path / "source")
    assert run(made, tmp_path / "one", pipeline_root=str(tmp_path / "root")) == {}
    assert "There is no previous dataset" in (tmp_path / "one.changes.html").read_text()
    shutil.copy(made / "a" / "1.png", made / "b" / "new.png")
    return made


def test_the_page_and_the_figures_compare_with_the_previous_dataset_and_change_no_byte(
    tmp_path: Path, source: Path
) -> None:
    run(source, tmp_path / "two")
    metrics = run(source, tmp_path / "three", pipeline_root=str(tmp_path / "root"))
    assert (metrics["images_added"], metrics["images_before"], metrics["images_now"]) == (1, 16, 17)
    assert "b/new.png" in (tmp_path / "three.changes.html").read_text()
    assert content(tmp_path / "two") == content(tmp_path / "three")


def test_a_previous_dataset_that_was_damaged_is_no_previous_dataset(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one" / "images.jsonl.gz").unlink()
    assert run(source, tmp_path / "two", pipeline_root=str(tmp_path / "root")) == {}
    assert "There is no previous dataset" in (tmp_path / "two.changes.html").read_text()
    assert capsys.readouterr().err.count("note: the previous dataset cannot be used") == 1


def test_a_comparison_that_fails_is_noted_on_the_page(
    tmp_path: Path, prepared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = shutil.copytree(prepared, tmp_path / "one")
    (damaged / "images.jsonl.gz").unlink()
    metrics: dict[str, Any] = {}
    changes.write(str(tmp_path / "page.html"), metrics, str(damaged), "gs://b/one", str(prepared))
    assert metrics == {}
    assert "Not compared with the previous dataset gs://b/one: " in (tmp_path / "page.html").read_text()
    assert capsys.readouterr().err.count("note: Not compared with the previous dataset gs://b/one") == 1


def test_a_defect_of_the_comparison_does_not_fail_the_dataset(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainer.data.changes._STAGES", None)
    assert run(source, tmp_path / "two", pipeline_root=str(tmp_path / "root")) == {}
    assert "Traceback" in capsys.readouterr().err
    assert "TypeError" not in (tmp_path / "two.html").read_text()
    assert "Not compared with the previous dataset" in (tmp_path / "two.changes.html").read_text()


def test_a_dataset_that_a_killed_attempt_published_is_compared_with_the_one_before(
    tmp_path: Path, source: Path
) -> None:
    (history,) = (tmp_path / "root").rglob("latest.json")
    before = json.loads(history.read_text())
    metrics = run(source, tmp_path / "two", pipeline_root=str(tmp_path / "root"))
    assert metrics["images_added"] == 1
    # As it is while the dataset is published.
    entry, *_ = json.loads(history.read_text())
    history.write_text(json.dumps([entry | {"is_published": False}, *before]))
    assert run(source, tmp_path / "two", pipeline_root=str(tmp_path / "root")) == metrics


def test_images_that_were_exported_again_are_replaced(tmp_path: Path, source: Path) -> None:
    for path in sorted(source.rglob("*.png")):
        Image.open(path).save(path, compress_level=1)
    metrics = run(source, tmp_path / "two", pipeline_root=str(tmp_path / "root"))
    assert metrics["images_replaced"] == 16


@pytest.mark.usefixtures("server")
def test_datasets_in_a_bucket_are_compared(prepared: Path) -> None:
    for path in prepared.iterdir():
        storage.write_bytes(f"gs://b/one/{path.name}", path.read_bytes())
    found = changes.between("gs://b/one", str(prepared))
    assert found.metrics()["images_now"] == found.metrics()["images_before"] == 16
    assert not any(found.pairs.values())
