"""What changed between two datasets: every image is accounted for, whatever happened to it."""

import gzip
import json
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from localvertex_base.userinput.errors import UserError
from trainer.data.changes import __main__ as command, changes, report
from trainer.data.changes.changes import Changes
from trainer.data.changes.images import ADDED, KINDS, RELABELLED, REMOVED, RENAMED, REPLACED
from trainer.data.preparing import image_list
from trainer.data.preparing.rows import Row
from trainer.data.stored.records import Figures

SIZE = 8
Image = tuple[str, str, str]
"""Name, label and content."""


def row(name: str, label: int | None, content: str, level: int = 100) -> Row:
    """Return the row of an image of one grey; without content, of a rejected one."""
    if not content:
        return Row.of(name=name, label=label, split="", identity={}, reason="torn")
    sums, squares = (level * SIZE**2,) * 3, (level**2 * SIZE**2,) * 3
    figures = Figures(
        content_hash=content,
        perceptual_hash="",
        width=40,
        height=30,
        num_bytes=9,
        pixel_sums=sums,
        pixel_sums_of_squares=squares,
    )
    return Row.of(name=name, label=label, split="", identity={"size": 9}, figures=figures, stored_hash=content)


def dataset(directory: Path, rows: Iterable[Row], class_names: list[str]) -> str:
    """Write a dataset that has a list of images and no image."""
    directory.mkdir(parents=True)
    with image_list.open_writer(directory, class_names) as add:
        for each in sorted(rows, key=lambda each: each.name):
            add(each)
    content: dict[str, Any] = {
        "format_version": 2,
        "fingerprint": "f" * 64,
        "class_names": class_names,
        "image_size": SIZE,
        "num_examples": dict.fromkeys(("train", "validation", "test"), 0),
        "shards": {split: [] for split in ("train", "validation", "test")},
        "source": "x",
        "statistics": {"counts": {name: dict.fromkeys(("train", "validation", "test"), 0) for name in class_names}},
    }
    (directory / "dataset.json").write_text(json.dumps(content))
    return str(directory)


def compared(root: Path, before: Iterable[Image], now: Iterable[Image]) -> Changes:
    """Write two datasets and compare them."""
    directories = []
    for name, images in (("before", list(before)), ("now", list(now))):
        labels = sorted({label for _, label, _ in images})
        rows = [row(image, labels.index(label), content) for image, label, content in images]
        directories.append(dataset(root / name, rows, labels))
    return changes.between(*directories)


def counts(found: Changes) -> dict[str, int]:
    """The number of images of each kind of change that happened."""
    return {kind: found.count(kind) for kind in KINDS if found.count(kind)}


BASE = [("a/1", "a", "1"), ("a/2", "a", "2"), ("b/3", "b", "3"), ("b/4", "b", "4")]


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (BASE, {}),
        ([*BASE, ("a/0", "a", "9")], {ADDED: 1}),
        (BASE[1:], {REMOVED: 1}),
        ([("a/1", "a", "9"), *BASE[1:]], {REPLACED: 1}),
        ([("a/x", "a", "1"), *BASE[1:]], {RENAMED: 1}),
        ([("b/1", "b", "1"), *BASE[1:]], {RELABELLED: 1}),
        ([("a/1", "b", "1"), *BASE[1:]], {RELABELLED: 1}),
        # New content and a new label under an old name: nothing is left of the image.
        ([("a/1", "b", "9"), *BASE[1:]], {REMOVED: 1, ADDED: 1}),
        # Numbers that move up by one: the images are the same, their names are not.
        ([("a/1", "a", "9"), ("a/2", "a", "1"), ("a/3", "a", "2"), *BASE[2:]], {ADDED: 1, RENAMED: 2}),
        # A copy is added; the original is where it was.
        ([*BASE, ("a/5", "a", "1")], {ADDED: 1}),
        ([("b/1", "b", "1"), ("b/2", "b", "1"), *BASE[1:]], {RELABELLED: 1, ADDED: 1}),
        ([(name, "c" if label == "b" else label, content) for name, label, content in BASE], {RELABELLED: 2}),
    ],
)
def test_what_became_of_an_image(tmp_path: Path, now: list[Image], expected: dict[str, int]) -> None:
    assert counts(compared(tmp_path, BASE, now)) == expected


def test_new_and_vanished_classes(tmp_path: Path) -> None:
    found = compared(tmp_path, BASE, [(name, "c" if label == "b" else label, content) for name, label, content in BASE])
    assert (found.new_classes, found.vanished_classes, found.moves) == (["c"], ["b"], [("b", "c", 2)])
    assert found.metrics()["new_classes"] == found.metrics()["vanished_classes"] == 1


def test_every_image_is_accounted_for_in_random_histories(tmp_path: Path) -> None:
    """Per class, images before plus what came minus what went is the number of images now."""
    draw = random.Random(7)
    for number in range(25):
        pool = [f"n{index}" for index in range(30)]

        def sample(pool: list[str] = pool) -> list[Image]:
            names = draw.sample(pool, draw.randrange(3, 30))
            return [(name, draw.choice("abc"), str(draw.randrange(12))) for name in names]

        before, now = sample(), sample()
        found = compared(tmp_path / str(number), before, now)
        for each in found.classes:
            came = each.counts[ADDED] + each.counts[RELABELLED]
            assert each.num_before + came - each.counts[REMOVED] - each.num_left == each.num_now
        held = Counter(content for _, _, content in before), Counter(content for _, _, content in now)
        # Content that is in both is never called new or gone.
        assert found.count(ADDED) + found.count(REPLACED) == (held[1] - held[0]).total()
        assert found.count(REMOVED) + found.count(REPLACED) == (held[0] - held[1]).total()
        for kind in KINDS:
            assert len(found.first[kind]) == min(20, found.count(kind))


def test_an_image_that_became_unusable_is_removed_and_named(tmp_path: Path) -> None:
    before = dataset(tmp_path / "before", [row("x", 0, "1"), row("y", 1, "2"), row("z", None, "")], ["a", "b"])
    now = dataset(tmp_path / "now", [row("x", 0, ""), row("y", 1, "2"), row("z", None, "")], ["a", "b"])
    found = changes.between(before, now)
    assert found.newly_rejected == (1, [("x", "torn")])
    assert counts(found) == {REMOVED: 1}
    assert counts(changes.between(now, before)) == {ADDED: 1}


def test_names_are_compared_in_the_order_of_the_list(tmp_path: Path) -> None:
    """Names beyond 16 bits sort otherwise in UTF-16 than in UTF-8, and equal names can be in a list twice."""
    names = ["a", "\uffee", "\U0001f600", "ä", "~"]
    images = [(name, "ab"[number % 2], str(number)) for number, name in enumerate(names)]
    assert counts(compared(tmp_path / "1", images, images[1:])) == {REMOVED: 1}
    twice = [("n", "a", "1"), ("n", "b", "2")]
    assert counts(compared(tmp_path / "2", [*BASE, *twice], [*BASE, *twice])) == {}
    assert counts(compared(tmp_path / "3", [*BASE, *twice], [*BASE, *twice[1:]])) == {REMOVED: 1}


def grey(levels: Iterable[int], first: int = 0) -> list[Row]:
    """Return images of two classes in turn."""
    return [row(f"{first + number:06}", number % 2, f"{first + number}", level) for number, level in enumerate(levels)]


def test_added_images_that_are_darker_are_a_shift_even_if_few(tmp_path: Path) -> None:
    draw = random.Random(1)
    earlier = grey([draw.randrange(80, 180) for _ in range(1000)])
    later = grey([draw.randrange(40, 100) for _ in range(40)], first=5000)
    before = dataset(tmp_path / "before", earlier, ["a", "b"])
    now = dataset(tmp_path / "now", [*earlier, *later], ["a", "b"])
    found = changes.between(before, now)
    assert [(each.name, each.sample, each.class_name) for each in found.shifts] == [
        ("brightness", "added or replaced", "")
    ]
    assert found.metrics()["shifts"] == 1
    assert changes.between(before, before).shifts == []


def edit(path: Path, **values: Any) -> None:
    """Set values in each line of a list."""
    lines = [json.loads(line) | values for line in gzip.open(path)]
    path.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-20]),
        lambda path: path.write_bytes(b"not gzip"),
        lambda path: path.write_bytes(gzip.compress(b"[]\n")),
        lambda path: path.write_bytes(gzip.compress(b'{"name": 1}\n')),
        lambda path: path.write_bytes(gzip.compress(b'{"name": "x", "content_hash": "1", "label": "a"}\n')),
        lambda path: path.write_bytes(gzip.compress(b'{"name": "\xff"}\n')),
        lambda path: path.write_bytes(gzip.compress(b"[" * 100_000 + b"\n")),
        lambda path: path.write_bytes(gzip.compress(b'{"name": "\\udcff", "reason": "x"}\n')),
        lambda path: edit(path, pixel_sums=[10**400, 0, 0]),
        lambda path: edit(path, width=-1),
        lambda path: path.write_bytes(gzip.compress(b"".join(reversed(gzip.open(path).readlines())))),
    ],
)
def test_a_damaged_list_is_one_line_that_names_it(tmp_path: Path, damage: Any) -> None:
    good = dataset(tmp_path / "good", grey([100] * 6), ["a", "b"])
    bad = dataset(tmp_path / "bad", grey([100] * 6), ["a", "b"])
    damage(tmp_path / "bad" / image_list.FILE)
    for pair in ((good, bad), (bad, good)):
        with pytest.raises(UserError, match=r"images\.jsonl\.gz of .*bad' is (missing|damaged)") as caught:
            changes.between(*pair)
        assert "\n" not in str(caught.value)


def test_the_command_prints_the_figures_and_writes_a_page_with_hostile_names_as_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = "<img src=x onerror=alert(1)>$x$"
    before = dataset(tmp_path / "before", grey([100, 120, 140]), ["a", "b"])
    now = dataset(tmp_path / "now", [*grey([100, 120]), row(hostile, 1, "9", 160)], ["a", hostile])
    page = tmp_path / "page.html"
    assert command.main([before, now, "--report", str(page)]) == 0
    printed = capsys.readouterr().out
    assert "images_added: 1\n" in printed
    html = page.read_text()
    assert "No shift in 0 tests. Two-sample Kolmogorov-Smirnov" in html
    assert "<img" not in html
    assert html.count("&lt;img src=x onerror=alert(1)&gt;$x$") >= 4
    assert "<img" not in report.render_without(hostile)


def test_another_image_size_is_noted_because_contrast_depends_on_it(tmp_path: Path) -> None:
    before, now = (dataset(tmp_path / name, grey([100, 120]), ["a", "b"]) for name in ("before", "now"))
    note = "The image sizes differ, and contrast depends on them."
    assert note not in report.render(changes.between(before, now), previous=before)
    path = tmp_path / "now" / "dataset.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"image_size": 2 * SIZE}))
    assert note in report.render(changes.between(before, now), previous=before)
