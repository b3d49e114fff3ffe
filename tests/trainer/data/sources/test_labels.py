"""Class names that a reader takes for one, and those that only look similar."""

import pytest

from localvertex._base.userinput.errors import UserError
from trainer.data.sources.labels import sorted_unlike


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("caf\u00e9", "cafe\u0301"),
        ("cat", "c\u200bat"),
        ("cat", "\ufeffcat"),
        ("cat", "\uff43\uff41\uff54"),
        ("big cat", "big_cat"),
        ("big-cat", "big\u00a0cat"),
        ("cat", "cat "),
    ],
)
def test_one_name_in_two_spellings_is_refused_and_both_can_be_told_apart(first: str, second: str) -> None:
    with pytest.raises(UserError, match=r"of flowers are the same name in two spellings") as refused:
        sorted_unlike([second, "dog", first], "flowers")
    assert ascii(first) in str(refused.value)
    assert "\n" not in str(refused.value)
    _, one, _, other, _ = str(refused.value).split("'")
    assert one != other


def test_similar_names_are_different_classes() -> None:
    names = ["-1", "1", "0", "A", "a", "temp_-5", "temp_5", "1_11", "11_1", "c", "c++", "-", "_", "gr\u00fcn", "grun"]
    assert sorted_unlike(names, "letters") == sorted(names)
