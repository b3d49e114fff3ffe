"""Calls overlap, their results come in order, and one that fails or hangs delays no end."""

import itertools
import threading
from collections.abc import Iterator

import pytest

from exact_resume.files.overlap import in_order


def test_results_come_in_the_order_of_the_items() -> None:
    slow = threading.Event()

    def call(item: int) -> int:
        if item == 0:
            slow.wait(60)
        if item == 7:
            slow.set()
        return item * 2

    assert list(in_order(call, range(100), num_threads=4)) == [2 * item for item in range(100)]
    assert list(in_order(call, [], num_threads=4)) == []


def test_all_threads_work_at_once_and_no_more() -> None:
    at_once = threading.Barrier(8)

    def call(item: int) -> int:
        at_once.wait(60)
        return threading.get_ident()

    before = threading.active_count()
    found = list(in_order(call, range(80), num_threads=8))
    assert len(found) == 80
    assert len(set(found)) == 8
    assert threading.active_count() <= before + 8


def test_few_items_are_taken_ahead_of_the_results() -> None:
    taken = itertools.count()
    results = in_order(lambda item: item, taken, num_threads=2)
    assert [next(results) for _ in range(10)] == list(range(10))
    results.close()  # type: ignore[attr-defined]
    assert next(taken) < 50


def test_an_exception_comes_at_its_place_and_ends_the_rest() -> None:
    def call(item: int) -> int:
        if item == 3:
            raise ValueError("three")
        return item

    results = in_order(call, itertools.count(), num_threads=2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="three"):
        next(results)
    with pytest.raises(StopIteration):
        next(results)


def test_a_failing_source_of_items_is_reported() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise OSError("the list ended early")

    with pytest.raises(OSError, match="ended early"):
        list(in_order(lambda item: item, items(), num_threads=2))


def test_an_abandoned_call_is_not_waited_for() -> None:
    hangs = threading.Event()
    results = in_order(lambda item: item or hangs.wait(60), [1, 0, 0, 2], num_threads=2)
    assert next(results) == 1
    results.close()  # type: ignore[attr-defined]
    assert not hangs.is_set()
    hangs.set()
