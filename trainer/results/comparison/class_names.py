"""Match the classes of the champion and of the dataset by name, and refuse lost and renamed ones."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from localvertex._base.userinput.spelling import on_one_line
from trainer.data.sources import labels
from trainer.results.comparison.not_comparable import NotComparable

FEWEST = 2
"""On images of a single class, no model beats one that always answers this class."""
_MAX_LISTED = 5


@dataclass(frozen=True, kw_only=True)
class Classes:
    """The classes of the champion, all of which the new model shares, and of the dataset."""

    common: tuple[str, ...]
    """Sorted; the comparison uses only their images."""
    only_challenger: tuple[str, ...]
    """Their images are left out."""


def match(champion: Collection[str], dataset: Collection[str]) -> Classes:
    """Return the classes of both models.

    Raises:
        NotComparable: The dataset lacks a class of the champion: it was lost, which only a user decides, or renamed.
    """
    lost, new = sorted(set(champion) - set(dataset)), sorted(set(dataset) - set(champion))
    if lost:
        spelled = {_fold(name): name for name in new}
        named = [
            "{} (now {})".format(*labels.quote_pair(name, spelled[_fold(name)]))
            if _fold(name) in spelled
            else repr(name)
            for name in lost
        ]
        others = f" and {len(new):,} others ({quoted_list(new)})" if new else ""
        raise NotComparable(
            f"the dataset has {len(champion) - len(lost):,} of the champion's {len(champion):,} classes{others}, but"
            f" not {first_of(named)}; rename the folders back if they are the same classes",
            is_final=True,
            has_other_classes=True,
        )
    return Classes(common=tuple(sorted(champion)), only_challenger=tuple(new))


def quoted_list(names: Iterable[str]) -> str:
    """Return one line with the first names and the number of further names."""
    return first_of([repr(name) for name in sorted(names)])


def first_of(texts: Sequence[str]) -> str:
    """Return one line with the first texts and the number of further ones."""
    more = f" and {len(texts) - _MAX_LISTED:,} more" if len(texts) > _MAX_LISTED else ""
    return ", ".join(on_one_line(text, 80) for text in texts[:_MAX_LISTED]) + more


def _fold(name: str) -> str:
    return labels.spelling(name).casefold().replace(" ", "")
