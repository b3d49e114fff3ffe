"""The index finds what a comparison of all pairs finds, and never compares all pairs."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from trainer.data.preparing.quality import signature_index, signatures
from trainer.data.preparing.quality.channels import Channels
from trainer.data.preparing.quality.signature_index import Matches

Signatures = npt.NDArray[np.uint8]
Values = npt.NDArray[np.int64]


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of pairs of each call of the real comparison."""
    numbers: list[int] = []
    compare = signatures.compare

    def counted(*arguments: Any) -> Any:
        numbers.append(len(arguments[1]))
        return compare(*arguments)

    monkeypatch.setattr(signatures, "compare", counted)
    return numbers


def random_values(number: int) -> Values:
    """Frequencies of images that have nothing in common."""
    return np.random.default_rng(0).integers(-100, 100, (number, 64))


def signatures_of(values: Values, deviations: tuple[float, ...] = (9, 9, 9)) -> Signatures:
    """The signatures of images with these frequencies."""
    channels = Channels(means=(99, 99, 99), deviations=deviations)
    found = signatures.signatures_of([(row.astype(np.int8).tobytes().hex(), channels) for row in values])
    return np.frombuffer(b"".join(found), dtype=np.uint8).reshape(len(values), -1).copy()


def planted(number: int) -> Signatures:
    """Random signatures; a third are near-duplicates, some of them mirrored or in another colour."""
    values = random_values(number)
    copies = range(0, number, 3)
    for copy in copies:
        values[copy] = values[(copy + 7) % number]
        values[copy, 40 : 41 + copy % 20] += 3
        if copy % 2:
            values[copy, 32:] *= -1
    found = signatures_of(values)
    red = signatures_of(values, (9, 1, 1))
    for copy in copies[::5]:
        found[copy] = red[copy]
    return found


def find(found: Signatures, counts: list[tuple[int, int, int]] | None = None) -> Matches:
    """Index signatures, one image of each in train and two in test if nothing else is given."""
    return signature_index.find(found, np.array(counts or [(1, 0, 2)] * len(found)))


def test_planted_pairs_are_found_and_no_others() -> None:
    found = planted(300)
    one, other = np.triu_indices(len(found), 1)
    _, alike = signatures.compare(signatures.unpack(found), one, other)
    expected = int(alike.sum())
    assert expected > 50
    index = find(found, [(1, 0, 0)] * len(found))
    assert index.is_complete
    num_pairs, pairs = index.rank(20)
    assert num_pairs == expected
    flagged = np.zeros(len(found), dtype=np.uint8)
    flagged[one[alike]] = flagged[other[alike]] = 1
    assert index.near.tolist() == flagged.tolist()
    assert len(pairs) == 20
    assert not any(is_across for _, _, is_across, _ in pairs)


def test_the_size_of_a_batch_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = find(planted(300))
    for size in (1, 7, 32, 33, 34, 299):
        monkeypatch.setattr(signature_index, "_BATCH_SIZE", size)
        part = find(planted(300))
        assert part.rank(20) == whole.rank(20)
        assert part.near.tolist() == whole.near.tolist()


def test_pairs_in_two_splits_come_first_and_then_the_nearest() -> None:
    values = random_values(6)
    values[1::2] = values[::2]
    values[:, 40] = 50
    values[1::2, 40] = (62, 66, 68)
    index = find(signatures_of(values), [(1, 0, 0), (1, 0, 0), (1, 0, 0), (0, 1, 0), (2, 0, 0), (0, 0, 1)])
    num_pairs, pairs = index.rank(20)
    assert [pair[:3] for pair in pairs] == [(2, 3, True), (4, 5, True), (4, 4, False), (0, 1, False)]
    assert 0 < pairs[0][3] < pairs[1][3]
    assert num_pairs == 5


def test_20000_images_of_one_signature_are_one_entry(compared: list[int]) -> None:
    index = find(signatures_of(random_values(1)), [(10_000, 6_000, 4_000)])
    assert index.rank(20) == (20_000 * 19_999 // 2, [(0, 0, True, 0)])
    assert compared == []


def test_many_signatures_in_one_band_are_compared_with_few_others_each(compared: list[int]) -> None:
    found = np.repeat(signatures_of(random_values(1)), 2_000, axis=0)
    # The last frequencies, which are in no band.
    found[:, 70:72] = np.stack(np.divmod(np.arange(2_000), 50), axis=1)
    index = find(found)
    assert sum(compared) <= signatures.NUM_BANDS * 32 * 2_000
    assert not index.is_complete
    # Each has others like it, although not all of them were compared.
    assert index.near.all()
    assert len(index.rank(20)[1]) == 20
