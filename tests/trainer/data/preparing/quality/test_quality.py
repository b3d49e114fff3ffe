"""Warnings of prepare: near-duplicates, label conflicts and odd images, and no false alarms."""

import csv
import html
import io
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageEnhance, ImageOps
from sklearn.datasets import load_digits

from localvertex._base.userinput.errors import UserError
from trainer.data import dataset
from trainer.data.preparing.quality import kinds
from trainer.data.splits import SPLITS
from trainer.prepare import main, prepare
from vertex_testing.html import Page


def scene(seed: int, size: tuple[int, int] = (120, 90)) -> Image.Image:
    """Shapes in colours on a background."""
    numbers = random.Random(seed)
    image = Image.new("RGB", size, tuple(numbers.randrange(256) for _ in range(3)))
    drawing = ImageDraw.Draw(image)
    for _ in range(8):
        left, top = numbers.randrange(size[0] - 10), numbers.randrange(size[1] - 10)
        box = (left, top, left + numbers.randrange(10, 60), top + numbers.randrange(10, 60))
        shape = numbers.choice([drawing.ellipse, drawing.rectangle])
        shape(box, fill=tuple(numbers.randrange(256) for _ in range(3)))
    return image


def recoded(image: Image.Image) -> Image.Image:
    buffer = io.BytesIO()
    image.resize((100, 75)).save(buffer, "JPEG", quality=50)
    return Image.open(buffer)


COPIES: dict[str, Callable[[Image.Image], Image.Image]] = {
    "recoded": recoded,
    "darker": lambda image: ImageEnhance.Brightness(image).enhance(0.7),
    "brighter": lambda image: ImageEnhance.Brightness(image).enhance(1.02),
    "mirrored": ImageOps.mirror,
}


def folder(root: Path, num_images: int = 12, size: tuple[int, int] = (120, 90)) -> Path:
    """Write a source of two classes in which nothing is wrong."""
    for label in ("a", "b"):
        (root / label).mkdir(parents=True)
        for number in range(num_images):
            scene(number + 1000 * (label == "b"), size).save(root / label / f"{number}.png")
    return root


def run(source: Path | str, output: Path, /, **options: Any) -> dict[str, Any]:
    """Prepare a source and return what was found."""
    given: dict[str, Any] = {
        "source": str(source),
        "output_directory": str(output),
        "report_path": f"{output}.html",
        "image_size": 48,
    }
    prepare(**(given | options))
    return dict(dataset.load(str(output)).statistics["quality"])


def names_of(pairs: list[dict[str, Any]]) -> set[frozenset[str]]:
    return {frozenset(image["name"] for image in pair["images"]) for pair in pairs}


def test_planted_copies_are_found_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = folder(tmp_path / "source", 20)
    planted = set()
    for number, (name, change) in enumerate(3 * list(COPIES.items()), start=8):
        change(scene(number)).save(source / "b" / f"{name}{number}.png")
        planted.add(frozenset([f"a/{number}.png", f"b/{name}{number}.png"]))
    found = run(source, tmp_path / "out")["near_duplicates"]
    assert names_of(found["pairs"]) == planted
    assert found["num_pairs"] == len(planted)
    data = dataset.load(str(tmp_path / "out"))
    splits = {record.file_name: split for split in SPLITS for record in data.records(split)}
    held_out = [name for pair in planted if len({splits[n] for n in pair}) > 1 for name in pair]
    assert found["num_across"] == sum(splits[name] != "train" for name in held_out)
    assert 0 < len(held_out) == 2 * len(planted) - found["num_within"]
    for pair in found["pairs"]:
        for image in pair["images"]:
            assert image["split"] == splits[image["name"]]
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[1] for line in lines] == [" leaks", " near-duplicates"]


@pytest.mark.parametrize("turn", Image.Transpose)
def test_copies_in_each_of_the_eight_orientations_are_found(tmp_path: Path, turn: Image.Transpose) -> None:
    source = folder(tmp_path / "source")
    for number in range(4):
        recoded(scene(number).transpose(turn)).convert("RGB").save(source / "b" / f"turned{number}.png")
    found = run(source, tmp_path / "out")["near_duplicates"]
    assert names_of(found["pairs"]) == {frozenset([f"a/{n}.png", f"b/turned{n}.png"]) for n in range(4)}


def test_all_near_duplicates_are_a_file_with_equal_ones_under_the_first_of_them(tmp_path: Path) -> None:
    source = folder(tmp_path / "source")
    for name in ("=1", "2", "3"):
        # The same pixels in other bytes.
        scene(3).save(source / "b" / f"{name}.png", compress_level=len(name))
        with (source / "b" / f"{name}.png").open("ab") as file:
            file.write(name.encode())
    recoded(scene(5)).save(source / "a" / "recoded.png")
    found = run(source, tmp_path / "out")["near_duplicates"]
    content = (tmp_path / "out" / "near_duplicates.csv").read_bytes()
    rows = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    splits = {
        record.file_name: split for split in SPLITS for record in dataset.load(str(tmp_path / "out")).records(split)
    }
    assert [(row["name"], row["near_duplicate_name"], row["similarity"] == "1.0") for row in rows] == [
        ("a/3.png", "b/2.png", True),
        ("a/3.png", "b/3.png", True),
        ("a/3.png", "b/=1.png", True),
        *((one, other, False) for one, other in [sorted(["a/5.png", "a/recoded.png"])]),
    ]
    for row in rows:
        assert row["split"] == splits[row["name"]]
        assert row["near_duplicate_split"] == splits[row["near_duplicate_name"]]
        assert row["near_duplicate_class"] == row["near_duplicate_name"][0]
    # The page counts pairs: those of the three copies with each other, too.
    assert found["num_pairs"] == 7
    run(source, tmp_path / "again")
    assert (tmp_path / "again" / "near_duplicates.csv").read_bytes() == content


def test_the_demo_has_no_false_pair_and_no_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = run("digits", tmp_path / "out", max_examples=150)
    assert found == {
        "warnings": [],
        "label_conflicts": [],
        "near_duplicates": {"num_across": 0, "num_within": 0, "num_pairs": 0, "is_complete": True, "pairs": []},
    }
    assert capsys.readouterr().err == ""


def test_enlarged_digits_are_not_taken_for_each_other(tmp_path: Path) -> None:
    digits = load_digits()
    for number, (pixels, label) in enumerate(zip(digits.images[:150], digits.target, strict=False)):
        path = tmp_path / "source" / str(label) / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((pixels * 15.9).astype(np.uint8)).resize((80, 80), Image.Resampling.BICUBIC).save(path)
    assert run(tmp_path / "source", tmp_path / "out")["near_duplicates"]["num_pairs"] == 0


def test_one_object_in_two_colours_and_small_or_flat_images_are_no_pair(tmp_path: Path) -> None:
    source = folder(tmp_path / "source")
    for colour in ("red", "blue"):
        image = Image.new("RGB", (120, 90), "white")
        ImageDraw.Draw(image).ellipse((20, 10, 90, 80), fill=colour)
        image.save(source / "a" / f"{colour}.png")
    for number in range(2):
        scene(0, (120, 63)).resize((100 + number, 63)).save(source / "a" / f"small{number}.png")
        Image.new("RGB", (100 + number, 100), (90, 130, 40)).save(source / "a" / f"flat{number}.png")
    assert run(source, tmp_path / "out")["near_duplicates"]["num_pairs"] == 0


def test_equal_files_are_no_pair_and_under_two_classes_a_conflict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = folder(tmp_path / "source")
    for name in ("a/copy.png", "b/other.png"):
        scene(0).save(source / name)
    scene(1).save(source / "a" / "again.png")
    found = run(source, tmp_path / "out")
    assert found["near_duplicates"]["num_pairs"] == 0
    (conflict,) = found["label_conflicts"]
    assert conflict["images"] == [["a/0.png", "a"], ["b/other.png", "b"]]
    assert capsys.readouterr().err == (
        "warning: label-conflicts: images in several classes: 1 (a/0.png = b/other.png);"
        " keep each image in its right class\n"
    )


def test_odd_images_are_named(tmp_path: Path) -> None:
    source = folder(tmp_path / "source", 9, (60, 45))
    odd = {
        "dark": scene(1).point(lambda level: level // 9),
        "flat": Image.new("RGB", (60, 60), (90, 130, 40)),
        "tiny": scene(2).resize((5, 4)),
        "odd-shape": scene(3).resize((181, 60)),
    }
    for name, image in odd.items():
        image.save(source / "a" / f"{name}.png")
    found = {kind: (number, names) for kind, _, number, names in run(source, tmp_path / "out")["warnings"]}
    assert found == {name: (1, [f"a/{name}.png"]) for name in odd} | {"few-images": (1, ["b: 9"])}


def test_imbalance_is_counted_in_images_that_are_used(tmp_path: Path) -> None:
    source = folder(tmp_path / "source", 2, (20, 20))
    (source / "b" / "1.png").unlink()
    for number in range(99):
        Image.radial_gradient("L").resize((9, 9 + number % 9)).rotate(number).save(source / "a" / f"more{number}.png")
    found = {kind: names for kind, _, _, names in run(source, tmp_path / "out")["warnings"]}
    assert found == {"few-images": ["b: 1"], "imbalance": ["a: 101"]}
    (source / "a" / "more0.png").write_bytes(b"")
    found = {kind: names for kind, _, _, names in run(source, tmp_path / "two")["warnings"]}
    assert found == {"few-images": ["b: 1"]}


def test_labels_that_differ_only_in_case_are_named(tmp_path: Path) -> None:
    source = folder(tmp_path / "source", 10)
    shutil.copytree(source / "a", source / "A")
    for number, path in enumerate(sorted((source / "A").iterdir())):
        Image.radial_gradient("L").resize((90, 90 + number)).rotate(9 * number).save(path)
    found = {kind: (number, names) for kind, _, number, names in run(source, tmp_path / "out")["warnings"]}
    assert found["similar-labels"] == (2, ["A, a"])


def test_strict_makes_errors_of_the_named_warnings_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = folder(tmp_path / "source")
    Image.new("RGB", (99, 99), (90, 130, 40)).save(source / "a" / "grey\n.png")
    assert run(source, tmp_path / "one", strict="leaks, dark")["warnings"]
    capsys.readouterr()
    arguments = [str(source), str(tmp_path / "two"), "--strict", "odd-shape,flat"]
    with pytest.raises(UserError) as error:
        main(arguments)
    assert str(error.value) == (
        "flat: images of nearly one colour (standard deviations below 5 of 255): 1 (a/grey\ufffd.png);"
        " look at them and remove those that show nothing; or prepare without strict: the report then shows them"
    )
    assert capsys.readouterr().err == ""
    assert {path.name for path in tmp_path.iterdir()} == {"source", "one", "one.html"}


def test_an_unknown_name_is_refused_with_the_list_before_the_source_is_read(tmp_path: Path) -> None:
    expected = r"strict='leaks,leak': 'leak' is not a warning; use leaks, near-duplicates, label-conflicts, dark, flat,"
    with pytest.raises(UserError, match=expected):
        run(tmp_path / "missing", tmp_path / "out", strict="leaks,leak")
    assert kinds.parse_strict(" , dark ,") == {"dark"}
    assert list(kinds.ADVICE) == list(kinds.TEXTS)


def test_rejected_images_are_a_file_that_no_spreadsheet_takes_for_formulas(tmp_path: Path) -> None:
    source = folder(tmp_path / "source")
    hostile = ['=HYPERLINK("x")', "+1", "-1", "@x", " =1", "\uff1d1", "new\nline\r", 'quo"te,comma', "plain"]
    for label in ("=a", *"ab"):
        (source / label).mkdir(exist_ok=True)
        for name in hostile:
            (source / label / f"{name}.png").write_bytes(b"x")
    scene(5).save(source / "=a" / "good.png")
    options = {"max_bad_fraction": 0.9}
    run(source, tmp_path / "one", **options)
    run(source, tmp_path / "two", **options)
    content = (tmp_path / "one" / "rejected.csv").read_bytes()
    assert content == (tmp_path / "two" / "rejected.csv").read_bytes()
    rows = list(csv.reader(io.StringIO(content.decode(), newline="")))
    assert rows[0] == ["name", "class", "reason"]
    assert len(rows) == len(content.splitlines()) == 3 * len(hostile) + 1
    cells = [cell for row in rows for cell in row]
    assert not any(cell.strip().startswith(tuple("=+-@\uff1d")) for cell in cells)
    assert {row[0] for row in rows if row[1] == "'=a"} >= {"'=a/+1.png", "'=a/plain.png"}
    assert "a/new\\nline\\r.png" in cells


def test_the_page_shows_every_name_as_text_and_is_bounded(tmp_path: Path) -> None:
    source = tmp_path / "source"
    label = "<img src=x onerror=alert(1)>"
    for number in range(40):
        name = f"{number:02}' onload=alert(1) &lt;b&gt;"
        folder_name = label if number % 2 else "b"
        (source / folder_name).mkdir(parents=True, exist_ok=True)
        scene(number).save(source / folder_name / f"{name}.png")
        scene(number).save(source / folder_name / f"{name}.jpg", quality=80)
    found = run(source, tmp_path / "out")["near_duplicates"]
    assert found["num_pairs"] == 40
    kinds_of_pairs = [pair["images"][0]["split"] != pair["images"][1]["split"] for pair in found["pairs"]]
    assert kinds_of_pairs == sorted(kinds_of_pairs, reverse=True)
    assert kinds_of_pairs.count(False) == 12
    assert 0 < kinds_of_pairs.count(True) <= 12
    text = Path(f"{tmp_path / 'out'}.html").read_text()
    page = Page(text)
    assert page.unbalanced == []
    images = [attributes for tag, attributes in page.elements if tag == "img"]
    assert len(images) == 40 + 2 * len(kinds_of_pairs)
    assert all(image["src"].startswith("data:image/") and image["alt"] for image in images)
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    assert f"{len(kinds_of_pairs)} of 40 are shown." in text
    first = found["pairs"][0]["images"][0]["name"]
    assert html.escape(first, quote=False).replace("'", "&#39;") in text


def test_the_order_of_the_source_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from trainer.data.sources.layout import ListedSource

    source = folder(tmp_path / "source")
    for number in range(4):
        scene(number).save(source / "b" / f"copy{number}.jpg", quality=60)
    run(source, tmp_path / "one")
    images = ListedSource.images
    monkeypatch.setattr(ListedSource, "images", lambda self: reversed(list(images(self))))
    run(source, tmp_path / "two")
    one, two = (json.loads((tmp_path / name / "dataset.json").read_text()) for name in ("one", "two"))
    assert one == two


def test_a_run_that_reads_only_new_images_finds_the_same(tmp_path: Path) -> None:
    source, root = folder(tmp_path / "source"), str(tmp_path / "root")
    for number in range(4):
        scene(number).save(source / "b" / f"copy{number}.jpg", quality=60)
    run(source, tmp_path / "before", pipeline_root=root)
    for number in range(4, 8):
        scene(number).save(source / "b" / f"copy{number}.jpg", quality=60)
    (source / "b" / "torn.png").write_bytes(b"x")
    found = run(source, tmp_path / "after", pipeline_root=root)
    assert found["near_duplicates"]["num_pairs"] == 8
    # Without the root there is no previous dataset, so splits have to be those of the content.
    run(source, tmp_path / "full")
    for name in ("dataset.json", "rejected.csv", "images.jsonl.gz"):
        assert (tmp_path / "after" / name).read_bytes() == (tmp_path / "full" / name).read_bytes()
    assert Path(f"{tmp_path / 'after'}.html").read_text() == Path(f"{tmp_path / 'full'}.html").read_text()
