"""The list of a source's images on disk: the same entries in the same order, for any number of readers."""

from typing import Any

from hypothesis import given, strategies as st

from trainer.data.sources.spool import Spool

TEXTS = st.text(st.characters() | st.characters(categories=["Cs"]), max_size=300)


ENTRIES = st.tuples(TEXTS, TEXTS, st.none() | st.dictionaries(TEXTS, st.integers() | TEXTS, max_size=3))


@given(st.lists(ENTRIES, max_size=30), st.lists(ENTRIES, max_size=3))
def test_entries_come_back_as_they_were(entries: list[Any], more: list[Any]) -> None:
    spool = Spool()
    for entry in entries:
        spool.append(*entry)
    assert list(spool) == entries
    for entry in more:
        spool.append(*entry)
    assert list(zip(spool, spool, strict=True)) == [(entry, entry) for entry in entries + more]


def test_readers_do_not_disturb_each_other() -> None:
    spool = Spool()
    for number in range(9000):
        spool.append(str(number), "x" * 20)
    first, second = iter(spool), iter(spool)
    assert [next(first) for _ in range(5000)] == list(spool)[:5000]
    assert [next(second)[0] for _ in range(10)] == [str(number) for number in range(10)]
    assert [name for name, *_ in first] == [str(number) for number in range(5000, 9000)]
