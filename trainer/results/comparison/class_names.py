"""Match the classes of the champion and of the dataset by name, and refuse renamed classes."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from localvertex_base.userinput.spelling import on_one_line
from trainer.results.comparison.not_comparable import NotComparable

FEWEST_COMMON = 2
"""On images of a single class, no model beats one that always answers this class."""
_MAX_LISTED = 5


@dataclass(frozen=True, kw_only=True)
class Classes:
    """The classes of the champion and of the dataset, which the new model shares."""

    common: tuple[str, ...]
    """Sorted; the comparison uses only their images."""
    only_champion: tuple[str, ...]
    """If the champion answers with one of them, it is wrong: the dataset has no such images."""
    only_challenger: tuple[str, ...]
    """Their images are left out."""


def match(champion: Collection[str], dataset: Collection[str]) -> Classes:
    """Return the common and the different classes of both models.

    Raises:
        NotComparable: Too few classes are common, or some were renamed.
    """
    both, lost, new = set(champion) & set(dataset), set(champion) - set(dataset), set(dataset) - set(champion)
    spelled = {_fold(name): name for name in new}
    renamed = [_change(name, spelled[_fold(name)]) for name in sorted(lost) if _fold(name) in spelled]
    if renamed:
        raise NotComparable(
            f"classes of the champion are spelled differently in the dataset: {_list(renamed)}; rename the folders"
            " back",
            is_final=True,
        )
    if len(both) < FEWEST_COMMON or 2 * len(both) < len(champion):
        raise NotComparable(
            f"the dataset has {len(both):,} of the champion's {len(champion):,} classes, fewer than"
            f" {max(FEWEST_COMMON, -(-len(champion) // 2)):,}: the champion's are {quoted_list(champion)}, the"
            f" dataset's {quoted_list(dataset)}; rename the folders back if they are the same classes",
            is_final=True,
            has_other_classes=True,
        )
    return Classes(common=tuple(sorted(both)), only_champion=tuple(sorted(lost)), only_challenger=tuple(sorted(new)))


def refuse_renamed(num_images: Mapping[str, int], num_as_lost: Mapping[str, int], classes: Classes) -> None:
    """Refuse new classes that the champion knows under names that the dataset no longer has.

    Their images are left out, so a model that fails on a renamed class could replace a champion that knows it.

    Args:
        num_images: New class -> number of its images.
        num_as_lost: New class -> number of its images that the champion puts into a class of `only_champion`.
        classes: The classes of both models.

    Raises:
        NotComparable: The champion does so for more than half of the images of a new class, or of all new classes.
    """
    renamed = [name for name, count in num_images.items() if count > 1 and 2 * num_as_lost[name] > count]
    if not renamed and 2 * sum(num_as_lost.values()) > sum(num_images.values()):
        # The new classes may have one image each.
        renamed = [name for name, count in num_as_lost.items() if count]
    if renamed:
        raise NotComparable(
            f"the champion classifies most images of {quoted_list(renamed)} as classes that the dataset does not have:"
            f" {quoted_list(classes.only_champion)}; if classes were renamed, rename the folders back",
            is_final=True,
        )


def quoted_list(names: Iterable[str]) -> str:
    """Return one line with the first names and the number of further names."""
    return _list([repr(name) for name in sorted(names)])


def _list(texts: list[str]) -> str:
    more = f" and {len(texts) - _MAX_LISTED:,} more" if len(texts) > _MAX_LISTED else ""
    return ", ".join(on_one_line(text, 80) for text in texts[:_MAX_LISTED]) + more


def _change(before: str, now: str) -> str:
    # Two Unicode forms of one letter look alike.
    quote = ascii if unicodedata.normalize("NFKC", before) == unicodedata.normalize("NFKC", now) else repr
    return f"{quote(before)} (now {quote(now)})"


def _fold(name: str) -> str:
    """Return a name without case, blanks, "_" and "-", in one Unicode form; macOS folders may use another form."""
    return re.sub(r"[\s_-]", "", unicodedata.normalize("NFKC", name).casefold())
