"""Batch predictions without a model: instances of every image, shards within their size, a page of the answers."""

import base64
import io
import json
import re
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from localvertex._base.userinput.errors import UserError
from trainer.command_line import TrainingError
from trainer.data import images
from trainer.results.batch import instances as batch_instances
from trainer.results.batch.instances import Instances, write
from trainer.results.batch.report import report

SIZE = 16


def picture(number: int, kind: str = "PNG", mode: str = "RGB") -> bytes:
    pixels = np.random.default_rng(number).integers(0, 255, (24, 20, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).convert(mode).save(buffer, kind)
    return buffer.getvalue()


def make(folder: Path, names: list[str]) -> dict[str, bytes]:
    found = {}
    for number, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        found[name] = picture(number, "TIFF" if path.suffix == ".tif" else "PNG", "L" if number % 2 else "RGB")
        path.write_bytes(found[name])
    return found


def instances(source: Path | str, folder: Path, **options: Any) -> tuple[Instances, dict[str, bytes]]:
    """Write the instances, and return them with the image of each name."""
    given = {"max_bad_fraction": 0.5, "image_size": SIZE} | options
    written = write(
        source=str(source),
        directory=str(folder / "instances"),
        uri="gs://b/instances",
        bad_images_path=str(folder / "bad"),
        **given,
    )
    lines = [
        json.loads(line)
        for uri in written.uris
        for line in (folder / "instances" / uri.rpartition("/")[2]).read_text().splitlines()
    ]
    assert all(each.keys() == {"b64", "file_name"} for each in lines)
    assert len(lines) == written.num_images == len({each["file_name"] for each in lines})
    return written, {each["file_name"]: base64.b64decode(each["b64"]) for each in lines}


def bad(folder: Path) -> dict[str, str]:
    return {each["file_name"]: each["reason"] for each in map(json.loads, (folder / "bad").read_text().splitlines())}


def test_every_image_of_a_folder_is_what_prepare_would_make_of_it(tmp_path: Path) -> None:
    made = make(tmp_path / "source", ["a.png", "b.tif", "cats/c.png", "cats/deep/er/d.png"])
    (tmp_path / "source" / "notes.txt").write_text("no image")
    written, found = instances(tmp_path / "source", tmp_path)
    assert found.keys() == made.keys()
    for name, data in found.items():
        expected = np.asarray(images.stretch(images.decode(made[name]), SIZE))
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(data))), expected)
    assert written.uris == ["gs://b/instances/instances-00000.jsonl"]
    assert (written.num_bad, written.destination) == (0, "gs://b/instances-predictions")


def test_bad_images_are_in_a_list_of_their_own(tmp_path: Path) -> None:
    make(tmp_path / "source", ["a.png", "b.png", "c.png"])
    (tmp_path / "source" / "broken.jpg").write_bytes(b"\xff\xd8\xff nothing")
    (tmp_path / "source" / "photo.heic").write_bytes(b"x")
    written, found = instances(tmp_path / "source", tmp_path)
    assert sorted(found) == ["a.png", "b.png", "c.png"]
    assert bad(tmp_path).keys() == {"broken.jpg", "photo.heic"}
    assert "convert it to JPEG" in bad(tmp_path)["photo.heic"]
    assert written.num_bad == 2
    with pytest.raises(UserError, match=r"2 of 5 images cannot be read, more than max_bad_fraction 0.3 \(photo.heic"):
        instances(tmp_path / "source", tmp_path, max_bad_fraction=0.3)


def test_a_manifest_needs_no_labels_and_may_have_them(tmp_path: Path) -> None:
    make(tmp_path / "data", ["a.png", "b.png", "c.png", "d.png"])
    manifest = tmp_path / "new.csv"
    manifest.write_text("data/a.png\ndata/b.png,cat\ndata/b.png,dog\ntest,data/c.png,x,y\ndata/missing.png\n")
    _, found = instances(manifest, tmp_path)
    assert sorted(found) == ["data/a.png", "data/b.png", "data/c.png"]
    assert list(bad(tmp_path)) == ["data/missing.png"]
    lines = [{"imageGcsUri": "data/a.png"}, {"imageGcsUri": "data/d.png", "boundingBoxAnnotations": []}, {"x": 1}]
    (tmp_path / "new.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    _, found = instances(tmp_path / "new.jsonl", tmp_path)
    assert sorted(found) == ["data/a.png", "data/d.png"]
    assert bad(tmp_path) == {"new.jsonl:3": "no imageGcsUri"}


@pytest.mark.parametrize(
    ("source", "message"),
    [("", "source is empty"), ("missing", "not found"), ("empty", "no images in"), ("x\0y", "source")],
)
def test_a_source_that_cannot_be_used_is_one_line(tmp_path: Path, source: str, message: str) -> None:
    (tmp_path / "empty").mkdir()
    given = str(tmp_path / source) if source in ("missing", "empty") else source
    with pytest.raises(UserError, match=message):
        instances(given, tmp_path)
    with pytest.raises(UserError, match="max_bad_fraction is 2"):
        instances(given, tmp_path, max_bad_fraction=2)


def test_no_shard_is_larger_than_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make(tmp_path / "source", [f"{number}.png" for number in range(40)])
    limit = 4000
    monkeypatch.setattr(batch_instances, "_MAX_SHARD_BYTES", limit)
    written, found = instances(tmp_path / "source", tmp_path)
    assert found.keys() == made.keys()
    sizes = [(tmp_path / "instances" / uri.rpartition("/")[2]).stat().st_size for uri in written.uris]
    assert len(sizes) > 5
    assert max(sizes) <= limit
    # All but the last are full: none has room for another line.
    assert min(sizes[:-1]) > limit // 2


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_instances, "_NUM_THREADS", 1)
    peaks, sizes = [], []
    for number in (100, 1000):
        folder = tmp_path / str(number)
        make(folder / "source", [f"{each}.png" for each in range(number)])
        tracemalloc.start()
        given = {"source": str(folder / "source"), "directory": str(folder / "instances"), "uri": "gs://b/i"}
        write(**given, bad_images_path=str(folder / "bad"), max_bad_fraction=0, image_size=64)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        sizes.append(sum(path.stat().st_size for path in (folder / "instances").iterdir()))
    assert sizes[1] > 5_000_000
    assert peaks[1] - peaks[0] < sizes[1] / 5


def answered(folder: Path, lines: list[dict[str, Any]], name: str = "prediction.results-00000-of-00001") -> Path:
    (folder / "predictions").mkdir(exist_ok=True)
    (folder / "predictions" / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder / "predictions"


def page(folder: Path, written: Instances, **options: Any) -> tuple[dict[str, Any], str]:
    metrics = report(
        predictions_directory=str(folder / "predictions"),
        bad_images_path=str(folder / "bad"),
        num_images=written.num_images,
        model="projects/p/locations/r/models/1@2",
        report_path=str(folder / "page.html"),
        results_path=str(folder / "results.jsonl"),
        **{"max_bad_fraction": 0.2} | options,
    )
    return metrics, (folder / "page.html").read_text()


def line(name: str, *probabilities: float) -> dict[str, Any]:
    label = f"class <{probabilities.index(max(probabilities))}>"
    return {"key": name, "prediction": {"label": label, "probabilities": list(probabilities)}}


def test_the_page_has_counts_per_class_and_bad_images(tmp_path: Path) -> None:
    names = [f"{number:02d}.png" for number in range(50)]
    make(tmp_path / "source", names)
    (tmp_path / "source" / "broken.png").write_bytes(b"x")
    written, _ = instances(tmp_path / "source", tmp_path)
    lines = [line(name, 0.5 + number / 200, 0.5 - number / 200) for number, name in enumerate(names)]
    lines[7] = line(names[7], 0.1, 0.9)
    answered(tmp_path, lines[:20])
    answered(tmp_path, lines[20:], "prediction.results-00001-of-00002")
    metrics, html = page(tmp_path, written)
    assert metrics | {"mean_probability": 0} == {
        "num_predictions": 50,
        "num_bad": 1,
        "num_missing": 0,
        "mean_probability": 0,
    }
    shown = re.sub(r"<[^>]*>", " ", html)
    assert "class &lt;0&gt;" in shown
    assert "98.0%" in shown
    assert "broken.png" in shown
    results = [json.loads(each) for each in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert [each["file_name"] for each in results] == names
    assert results[7] == {"file_name": names[7], "label": "class <1>", "probability": 0.9}


def test_missing_predictions_fail_above_the_fraction(tmp_path: Path) -> None:
    names = [f"{number}.png" for number in range(10)]
    make(tmp_path / "source", names)
    written, _ = instances(tmp_path / "source", tmp_path)
    answered(tmp_path, [line(name, 0.9, 0.1) for name in names[:8]])
    answered(tmp_path, [{"key": "8.png", "error": {"code": 3, "message": "too large"}}], "prediction.errors_stats-0")
    metrics, html = page(tmp_path, written)
    assert metrics["num_missing"] == 2
    assert "2 images have no prediction" in html
    assert "too large" in html
    with pytest.raises(TrainingError, match=r"2 of 10 images have no prediction, more than max_bad_fraction 0.1"):
        page(tmp_path, written, max_bad_fraction=0.1)
    (tmp_path / "predictions" / "prediction.results-00000-of-00001").unlink()
    with pytest.raises(TrainingError, match=r"no predictions in .*look at the log"):
        page(tmp_path, written)


@pytest.mark.parametrize(
    "text", ["x", "[]", '{"key": "a"}', '{"key": "a", "prediction": [0.1]}', '{"key": 1, "prediction": {"label": "a"}}']
)
def test_an_answer_of_another_model_is_one_line(tmp_path: Path, text: str) -> None:
    make(tmp_path / "source", ["a.png"])
    written, _ = instances(tmp_path / "source", tmp_path)
    answered(tmp_path, [])
    (tmp_path / "predictions" / "predictions_0001.jsonl").write_text(text + "\n")
    with pytest.raises(TrainingError, match=r"predictions_0001.jsonl:1 is .*not exported by this project"):
        page(tmp_path, written)
