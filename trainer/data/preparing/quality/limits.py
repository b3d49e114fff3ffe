"""Refuses unusable sources: too many bad images, a class or a split without images."""

from collections.abc import Sequence

from localvertex._base.userinput.errors import UserError
from trainer.data.preparing.rows import Rows
from trainer.data.splits import SPLITS


def refuse_bad(
    source: str, max_fraction: float, first: Sequence[tuple[str, str]], *, num_bad: int, num_good: int
) -> None:
    """Refuse too many bad images.

    Args:
        source: As the user wrote it.
        max_fraction: Fraction of images that may be bad.
        first: Name and reason of the first bad images.
        num_bad: Number of bad images.
        num_good: Number of other images.

    Raises:
        UserError: There are too many.
    """
    num_all = num_bad + num_good
    if num_bad > max_fraction * num_all:
        named = "; ".join(f"{name}: {reason}" for name, reason in first[:3])
        raise UserError(
            f"{num_bad} of {num_all} images of {source!r} are bad, more than max_bad_fraction={max_fraction:g} allows"
            f" ({named}); repair or remove them, or raise max_bad_fraction"
        )


def refuse_untrainable(source: str, class_names: list[str], rows: Rows) -> None:
    """Refuse a class or a split without images.

    Raises:
        UserError: There is one.
    """
    counts = rows.label_counts()
    if empty := [name for label, name in enumerate(class_names) if label not in counts]:
        raise UserError(
            f"class {empty[0]!r} of {source!r} has no usable image; add images, remove the class, or raise max_examples"
        )
    present = {split for split, _ in rows.split_counts()}
    if missing := [split for split in SPLITS if split not in present]:
        raise UserError(
            f"{source!r} has {rows.num_contents()[0]} distinct images, too few for a {missing[0]} split; give"
            " 3 or more per class, or, if the source has splits, this one, too"
        )
