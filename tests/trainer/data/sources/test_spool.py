"""The list of a source's images on disk: the same pairs in the same order, for any number of readers."""

from hypothesis import given, strategies as st

from trainer.data.sources.spool import Spool

TEXTS = st.text(st.characters() | st.characters(categories=["Cs"]), max_size=300)


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=30), st.lists(st.tuples(TEXTS, TEXTS), max_size=3))
def test_pairs_come_back_as_they_were(pairs: list[tuple[str, str]], more: list[tuple[str, str]]) -> None:
    spool = Spool()
    for pair in pairs:
        spool.append(*pair)
    assert list(spool) == pairs
    for pair in more:
        spool.append(*pair)
    assert list(zip(spool, spool, strict=True)) == [(pair, pair) for pair in pairs + more]


def test_readers_do_not_disturb_each_other() -> None:
    spool = Spool()
    for number in range(9000):
        spool.append(str(number), "x" * 20)
    first, second = iter(spool), iter(spool)
    assert [next(first) for _ in range(5000)] == list(spool)[:5000]
    assert [next(second)[0] for _ in range(10)] == [str(number) for number in range(10)]
    assert [name for name, _ in first] == [str(number) for number in range(5000, 9000)]
