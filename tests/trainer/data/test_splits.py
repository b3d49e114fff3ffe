"""Which split an image is in: decided by its content, stable when others are added."""

import hashlib
from dataclasses import replace
from random import Random

from hypothesis import given, settings, strategies as st

from trainer.data.splits import SPLITS, Content, Splits, strictness


def candidate(number: int, label: int = 0, split: str = "") -> Content:
    """An image with content of its own."""
    content_hash = hashlib.sha256(str(number).encode()).hexdigest()
    return Content(content_hash=content_hash, labels=frozenset([label]), split=split)


def assign(everything: list[Content], previous: dict[str, str] | None = None) -> dict[str, str]:
    """Content hash -> split."""
    known = [replace(content, previous=(previous or {}).get(content.content_hash, "")) for content in everything]
    splits = Splits(lambda: known)
    return {content.content_hash: splits.of(content) for content in known}


def test_about_a_tenth_is_for_validation_and_a_tenth_for_test() -> None:
    splits = list(assign([candidate(n, n % 3) for n in range(5000)]).values())
    assert 400 < splits.count("test") < 600
    assert 400 < splits.count("validation") < 600


def test_an_example_keeps_its_split_when_the_folder_grows() -> None:
    small = assign([candidate(n, n % 2) for n in range(400)])
    large = assign([candidate(n, n % 2) for n in range(4000)])
    assert all(large[content] == split for content, split in small.items())


@settings(max_examples=60)
@given(st.lists(st.integers(3, 9), min_size=2, max_size=6), st.integers(0, 1000))
def test_every_class_with_three_images_is_in_every_split(sizes: list[int], first: int) -> None:
    everything = [candidate(first + 1000 * label + n, label) for label, size in enumerate(sizes) for n in range(size)]
    splits = assign(everything)
    for label in range(len(sizes)):
        found = {splits[c.content_hash] for c in everything if c.labels == {label}}
        assert found == {"train", "validation", "test"}


def test_splits_of_the_source_are_kept_and_validation_is_taken_from_train() -> None:
    everything = [candidate(n, n % 2, "test" if n < 100 else "train") for n in range(600)]
    splits = assign(everything)
    for image in everything[:100]:
        assert splits[image.content_hash] == "test"
    trained = [splits[image.content_hash] for image in everything[100:]]
    assert set(trained) == {"train", "validation"}
    assert 25 < trained.count("validation") < 80


def test_three_splits_of_the_source_are_all_kept() -> None:
    wanted = ["train", "validation", "test"]
    everything = [candidate(n, n % 2, wanted[n % 3]) for n in range(60)]
    splits = assign(everything)
    assert all(splits[image.content_hash] == image.split for image in everything)


def test_an_image_in_train_and_test_is_only_in_test() -> None:
    assert sorted(("test", "train", "", "validation"), key=strictness) == ["", *SPLITS]
    splits = assign([candidate(1, 0, "test"), candidate(2, 1, "train")])
    assert splits[candidate(1).content_hash] == "test"


@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["", *SPLITS])), max_size=40), st.randoms())
def test_the_order_of_the_images_changes_nothing(images: list[tuple[int, str]], random: Random) -> None:
    everything = [candidate(number, label, split) for number, (label, split) in enumerate(images)]
    shuffled = random.sample(everything, len(everything))
    assert assign(everything) == assign(shuffled)


@given(st.integers(3, 30), st.data())
def test_the_split_of_the_previous_dataset_stands(size: int, data: st.DataObject) -> None:
    everything = [candidate(number, number % 2) for number in range(size)]
    before = assign(everything[: data.draw(st.integers(0, size))])
    after = assign(everything, before)
    assert {content: after[content] for content in before} == before


def test_the_split_of_the_previous_dataset_yields_to_that_of_the_source() -> None:
    contents = [candidate(number, number % 2, SPLITS[number % 3]) for number in range(30)]
    before = {content.content_hash: SPLITS[number % 2 + 1] for number, content in enumerate(contents)}
    assert assign(contents, before) == {content.content_hash: content.split for content in contents}
    # Moved from test to train by the user; validation is not in the source, so that it is decided here.
    moved = [candidate(number, number % 2, "train" if number % 3 else "test") for number in range(30)]
    after = assign(moved, dict.fromkeys(before, "test"))
    assert [after[content.content_hash] == "test" for content in moved] == [not number % 3 for number in range(30)]


def test_a_gap_is_filled_although_the_previous_dataset_had_one() -> None:
    everything = [candidate(number, 0) for number in range(3)]
    after = assign(everything, {content.content_hash: "train" for content in everything})
    assert sorted(after.values()) == sorted(SPLITS)


def position(content: Content) -> float:
    digest = hashlib.sha256(f"0:{content.content_hash}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


@given(st.integers(3, 99), st.integers(0, 10_000))
def test_a_small_class_has_a_tenth_in_each_split_and_its_test_images_have_the_lowest_positions(
    size: int, first: int
) -> None:
    # Another class does not matter.
    everything = [candidate(first + number) for number in range(size)] + [candidate(10**6 + n, 1) for n in range(500)]
    splits = assign(everything)
    by_position = [splits[each.content_hash] for each in sorted(everything[:size], key=position)]
    assert by_position == sorted(by_position, key=["test", "validation", "train"].index)
    assert all(by_position.count(split) >= max(1, round(size / 10)) for split in SPLITS)


def test_in_a_class_of_a_hundred_images_the_hash_alone_decides() -> None:
    """The fingerprints of such datasets stay as they were."""
    everything = [candidate(number) for number in range(100)]
    tenths = ["test", "validation", *["train"] * 8]
    assert assign(everything) == {each.content_hash: tenths[int(10 * position(each))] for each in everything}


@settings(max_examples=40)
@given(st.lists(st.integers(1, 100), min_size=1, max_size=6), st.integers(0, 10_000))
def test_a_class_that_grows_in_steps_moves_no_image(steps: list[int], first: int) -> None:
    everything = [candidate(first + number) for number in range(3 + sum(steps))]
    before, size = assign(everything[:3]), 3
    for step in steps:
        size += step
        after = assign(everything[:size], before)
        assert {content: after[content] for content in before} == before
        # One new image cannot fill two splits.
        assert size >= 100 or all(list(after.values()).count(split) >= round(size / 10) - 1 for split in SPLITS)
        before = after


def test_without_a_previous_dataset_no_image_of_train_becomes_one_of_test() -> None:
    for first in range(0, 40_000, 2_000):
        everything = [candidate(first + number, number % 2) for number in range(2_000)]
        before = assign(everything[:20])
        for size in (60, 150, 500, 2_000):
            after = assign(everything[:size])
            moved = {(before[content], after[content]) for content in before}
            assert ("train", "test") not in moved
            before = after
