"""PreviousRows rows: found by an index, so that many images cost little more per image than few."""

import pytest

from trainer.data.preparing import rows, shards
from trainer.data.preparing.previous.rows import PreviousRows
from trainer.data.preparing.rows import Row
from trainer.data.sources.source import Identity, SourceImage
from trainer.data.splits import SPLITS, Splits
from trainer.data.stored.records import Figures


def _identity(number: int) -> Identity:
    return {"size": number, "ctime_ns": 0}


def _row(number: int) -> Row:
    figures = Figures(
        content_hash=f"{number * 7919 % 2**32:08x}" + "0" * 56,
        perceptual_hash="0" * 128,
        width=3,
        height=4,
        num_bytes=5,
        pixel_sums=(1, 2, 3),
        pixel_sums_of_squares=(1, 2, 3),
    )
    return Row.of(name=f"a/{number}", label=0, split="train", identity=_identity(number), figures=figures)


def _image(number: int) -> SourceImage:
    return SourceImage(name=f"a/{number}", label=0, split="", read=bytes, identity=dict, location="")


def _num_steps(number: int, *, is_previous: bool) -> int:
    """Return the steps, in hundreds, that SQLite takes from known images to the rows of shards."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    with rows.open_rows() as opened:
        opened.database.set_progress_handler(count, 100)
        known = PreviousRows(opened)
        if is_previous:
            known.add_previous(
                ((rows.to_values(row), row.identity) for row in map(_row, range(number))),
                began_ns=2**62,
                is_trusted=True,
            )
        # Of a killed attempt, which had the previous dataset, too.
        known.add_part(map(_row, range(number)), began_ns=2**62)
        known.sort()
        assert known.take([(_image(each), _identity(each)) for each in range(number)]) == []
        unknown = [(_image(0), _identity(1)), (_image(0), {})]
        assert known.take([unknown[0], (_image(1), _identity(1)), unknown[1]]) == unknown
        opened.database.execute("DELETE FROM images WHERE rowid > ?", (number,))
        opened.set_splits(Splits(opened.contents))
        planned = [shard for split in SPLITS for shard in shards.plan(split, opened)]
        assert sum(len([*shard.rows(opened)]) for shard in planned) == number
    return steps


@pytest.mark.parametrize("is_previous", [True, False])
def test_four_times_as_many_known_images_take_about_four_times_as_many_steps(is_previous: bool) -> None:
    few, many = (_num_steps(number, is_previous=is_previous) for number in (400, 1600))
    # Without an index it would be sixteen times; sorting adds a little.
    assert many < 6 * few
