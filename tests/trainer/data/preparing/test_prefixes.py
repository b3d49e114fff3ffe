"""The layout of a split: a pure function of its images, in which growth changes only its own neighbourhood."""

import hashlib
from random import Random

import pytest
from hypothesis import given, strategies as st

from trainer.data.preparing.prefixes import bounds, layout

TARGET = 100
# Hashes of few bits meet in long prefixes; those of all bits are spread as in a real dataset.
HASHES = st.one_of(
    st.integers(0, 15).map(lambda value: f"{value:x}".ljust(64, "0")),
    st.integers(0, 15).map(lambda value: f"{value:x}".rjust(64, "f")),
    st.integers(0, 10**6).map(lambda value: hashlib.sha256(str(value).encode()).hexdigest()),
)
SIZES = st.dictionaries(HASHES, st.integers(1, 90), max_size=40)


def prefixes(sizes: dict[str, int]) -> list[str]:
    """The layout of records by hash."""

    def extent(first: str, last: str) -> tuple[int, int]:
        found = [size for content_hash, size in sizes.items() if first <= content_hash <= last]
        return sum(found), min(2, len(found))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trainer.data.preparing.prefixes.TARGET_BYTES", TARGET)
        return list(layout(extent))


def below(prefix: str, sizes: dict[str, int]) -> dict[str, int]:
    first, last = bounds(prefix)
    return {content_hash: size for content_hash, size in sizes.items() if first <= content_hash <= last}


def bits(content_hash: str) -> str:
    return f"{int(content_hash, 16):0256b}"


@given(SIZES)
def test_each_image_is_in_one_shard_and_the_shards_are_in_the_order_of_the_hashes(sizes: dict[str, int]) -> None:
    shards = [sorted(below(prefix, sizes)) for prefix in prefixes(sizes)]
    assert [content_hash for shard in shards for content_hash in shard] == sorted(sizes)
    assert all(shards)


@given(SIZES)
def test_a_shard_is_as_large_as_it_may_be(sizes: dict[str, int]) -> None:
    for prefix in prefixes(sizes):
        records = below(prefix, sizes)
        assert sum(records.values()) <= TARGET or len(records) == 1
        assert all(bits(content_hash).startswith(prefix) for content_hash in records)
        if prefix:
            above = below(prefix[:-1], sizes)
            assert sum(above.values()) > TARGET
            assert len(above) > 1


@given(SIZES, st.randoms())
def test_the_order_changes_nothing(sizes: dict[str, int], random: Random) -> None:
    shuffled = dict(random.sample(list(sizes.items()), len(sizes)))
    assert prefixes(shuffled) == prefixes(sizes)


@given(SIZES, HASHES, st.integers(1, 90))
def test_one_more_image_changes_only_the_shard_of_its_prefix_or_splits_it(
    sizes: dict[str, int], new: str, size: int
) -> None:
    before, after = prefixes(sizes), prefixes({**sizes, new: max(size, sizes.get(new, 0))})
    gone, come = set(before) - set(after), set(after) - set(before)
    assert all(bits(new).startswith(prefix) for prefix in gone)
    assert len(gone) <= 1
    assert all(prefix.startswith(tuple(gone)) if gone else bits(new).startswith(prefix) for prefix in come)


def test_no_images_are_no_shards_and_equal_ones_are_never_divided() -> None:
    assert prefixes({}) == []
    assert prefixes({"0" * 64: 10 * TARGET}) == [""]
