"""What changed between two datasets: every image is accounted for, whatever happened to it."""

import dataclasses
import random
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from trainer.data import changes
from trainer.data.changes import ADDED, KINDS, RELABELLED, REMOVED, RENAMED, REPLACED, Changes
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
    """Write a dataset that has a list of images and nothing else."""
    directory.mkdir(parents=True)
    with image_list.open_writer(directory, class_names) as add:
        for each in sorted(rows, key=lambda each: each.name):
            add(each)
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
    return {kind: len(found.pairs[kind]) for kind in KINDS if found.pairs[kind]}


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
        came = Counter(image.label for kind in (ADDED, RELABELLED) for _, image in found.pairs[kind] if image)
        left = Counter(image.label for kind in (REMOVED, RELABELLED) for image, _ in found.pairs[kind] if image)
        for label in "abc":
            assert found.num_before[label] + came[label] - left[label] == found.num_now[label]
        held = Counter(content for _, _, content in before), Counter(content for _, _, content in now)
        # Content that is in both is never called new or gone.
        assert len(found.pairs[ADDED] + found.pairs[REPLACED]) == (held[1] - held[0]).total()
        assert len(found.pairs[REMOVED] + found.pairs[REPLACED]) == (held[0] - held[1]).total()


def test_an_image_that_became_unusable_is_removed(tmp_path: Path) -> None:
    before = dataset(tmp_path / "before", [row("x", 0, "1"), row("y", 1, "2"), row("z", None, "")], ["a", "b"])
    now = dataset(tmp_path / "now", [row("x", 0, ""), row("y", 1, "2"), row("z", None, "")], ["a", "b"])
    found = changes.between(before, now)
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


def test_another_split_is_no_change_of_an_image(tmp_path: Path) -> None:
    directories = [
        dataset(
            tmp_path / split,
            [dataclasses.replace(row("x", 0, "1"), split=split), row("y", 1, "2")],
            ["a", "b"],
        )
        for split in ("train", "test")
    ]
    assert counts(changes.between(*directories)) == {}


def test_hostile_names_are_text_on_the_page(tmp_path: Path) -> None:
    hostile = "<img src=x onerror=alert(1)>$x$"
    found = compared(tmp_path, BASE, [*BASE, (hostile, hostile, "9")])
    html = changes.render(found, previous=hostile)
    assert found.metrics()["images_added"] == 1
    assert "<img" not in html
    # The subtitle, the class, the name and its class.
    assert html.count("&lt;img src=x onerror=alert(1)&gt;$x$") == 4


def test_the_page_counts_by_class_and_names_images_of_each_kind(tmp_path: Path) -> None:
    now = [("a/1", "b", "1"), ("a/2", "a", "9"), ("b/x", "b", "3"), ("c/1", "c", "8")]
    html = changes.render(compared(tmp_path, BASE, now), previous="one")
    rows = [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", html)]
    assert [row for row in rows if row] == [
        ["a", "2", "1"],
        ["c", "0", "1"],
        ["added", "", "", "c/1", "c"],
        ["removed", "b/4", "b", "", ""],
        ["replaced", "a/2", "a", "a/2", "a"],
        ["relabelled", "a/1", "a", "a/1", "b"],
        ["renamed", "b/3", "b", "b/x", "b"],
    ]
