"""Class names that look alike: one comparison for the classes of a source, and for the classes of two models."""

import re
import unicodedata
from collections.abc import Iterable

from localvertex._base.userinput.errors import UserError


def spelling(name: str) -> str:
    """Return a name as it is read: in one Unicode form, without invisible characters, and "big_cat" as "big cat".

    A sign stays, because "-1" is not "1".
    """
    shown = "".join(character for character in name if unicodedata.category(character) != "Cf")
    return re.sub(r"(?<=\w)[\s_-](?=\w)", " ", unicodedata.normalize("NFKC", shown).strip())


def quote_pair(first: str, second: str) -> tuple[str, str]:
    """Return two names in quotation marks, escaped if they look alike."""
    quote = ascii if unicodedata.normalize("NFKC", first) == unicodedata.normalize("NFKC", second) else repr
    return quote(first), quote(second)


def sorted_unlike(class_names: Iterable[str], where: str) -> list[str]:
    """Return the class names of a source, sorted.

    Raises:
        UserError: Two of them are one name to a reader. Upper and lower case may be different classes.
    """
    names, first = sorted(class_names), dict[str, str]()
    for name in names:
        if (other := first.setdefault(spelling(name), name)) != name:
            pair = " and ".join(quote_pair(other, name))
            raise UserError(f"classes {pair} of {where} are the same name in two spellings; write it in one way")
    return names
