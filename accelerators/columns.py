"""Prints rows as columns."""

from collections.abc import Sequence


def aligned(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> list[str]:
    """Return the rows as lines with columns of equal width; those of the given numbers end to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def size(value: float | None) -> str:
    """Return 14.4 as "14.4", 60.0 as "60" and None as "?"."""
    return "?" if value is None else f"{value:g}"
