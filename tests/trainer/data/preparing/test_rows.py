"""The rows of a source on disk: whole, sorted, and without a trace at the end."""

import os
import sqlite3

import pytest

from trainer.data.preparing import rows
from trainer.data.preparing.rows import Row
from trainer.data.splits import Splits
from trainer.data.stored.records import Figures


def row(name: str, label: int, content: int, split: str = "") -> Row:
    figures = Figures(
        content_hash=f"{content:064x}",
        perceptual_hash="0" * 16,
        width=3,
        height=4,
        num_bytes=5,
        pixel_sums=(1, 2, 3),
        pixel_sums_of_squares=(2**40, 0, 7),
    )
    identity: dict[str, int | str] = {"generation": 2**62, "crc32c": "x"}
    return Row.of(name=name, label=label, split=split, identity=identity, remarks=("r",), figures=figures, offset=2**40)


def test_rows_come_back_as_they_were_in_the_order_of_their_names() -> None:
    bad = Row.of(name="ä\n", label=None, split="test", identity={}, reason="damaged")
    found = [row("b", 0, 1), bad, row("a", 1, 2)]
    with rows.open_rows() as opened:
        opened.add(found)
        assert [each for each in opened.by_name()] == [found[2], found[0], found[1]]
        assert opened.label_counts() == {0: 1, 1: 1}


def test_a_split_is_sorted_by_content_label_and_name() -> None:
    found = [row("d", 1, 2), row("c", 0, 2), row("b", 0, 2), row("a", 0, 3)]
    with rows.open_rows() as opened:
        opened.add(found)
        opened.set_splits(Splits(opened.contents))
        ((split, _),) = {(split, 0) for split, _ in opened.split_counts()} or {("", 0)}
        assert [r.name for r in opened.used_rows(split, "0" * 64, "f" * 64)] == ["b", "c", "d", "a"]
        assert opened.extent(split, f"{2:064x}", f"{2:064x}")[1] == 1
        assert opened.extent(split, f"{2:064x}", f"{3:064x}")[1] == 2
        assert opened.extent(split, f"{4:064x}", "f" * 64)[1] == 0


def test_equal_images_are_one_content_with_the_strictest_of_their_splits() -> None:
    given = [("", 2), ("train", 0), ("validation", 0), ("test", 1), ("validation", 0), ("train", 0), ("", 3)]
    # Images 0 and 1, 2 and 3, and so on are equal.
    found = [row(str(number), label, number // 2, split) for number, (split, label) in enumerate(given)]
    with rows.open_rows() as opened:
        opened.add(found)
        contents = [(content.split, sorted(content.labels), content.previous) for content in opened.contents()]
    assert contents == [("train", [0, 2], ""), ("test", [0, 1], ""), ("validation", [0], ""), ("", [3], "")]


def test_a_full_disk_is_an_error_of_the_disk() -> None:
    def fill() -> None:
        with rows.open_rows() as opened:
            # What a full disk does to SQLite, which has no file here that could be put on one.
            opened.database.execute("PRAGMA max_page_count = 10")
            opened.add(row(str(number), 0, number) for number in range(10_000))

    with pytest.raises(OSError, match="temporary file of the rows cannot be written") as caught:
        fill()
    assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
    assert os.strerror(caught.value.errno or 0) == "No space left on device"
