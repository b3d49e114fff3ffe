"""Rows in columns for a terminal: nothing is cut, and a first cell that is too long gets its own lines."""

import textwrap
from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

_GAP = "  "

Row = Sequence[Text]


def align(rows: Sequence[Row], *, width: int | None, right: int = -1) -> list[list[Text]]:
    """Return the lines of each row of a table: one, or two if its first cell is too long.

    Args:
        rows: Cells from left to right; all rows have the same number. The first one is the name of the row.
        width: Columns of the terminal; None for no limit.
        right: The right-aligned column.
    """
    widths = [max(cell_len(row[column].plain) for row in rows) for column in range(len(rows[0]))] if rows else []
    if widths and width is not None:
        # One long name must not move the other cells out of sight.
        room = width - sum(each + len(_GAP) for each in widths[1:])
        widths[0] = max((size for row in rows if (size := cell_len(row[0].plain)) <= room), default=0)
    lines = []
    for row in rows:
        above = [row[0]] if cell_len(row[0].plain) > widths[0] else []
        cells = [Text() if above else row[0], *row[1:]]
        line = Text(_GAP).join(_pad(cell, widths[column], column == right) for column, cell in enumerate(cells))
        line.rstrip()
        lines.append([*above, line])
    return lines


def num_fitting(rows: Sequence[Row], *, width: int | None) -> int:
    """Return how many leading columns fit into the width."""
    total = -len(_GAP)
    for column in range(len(rows[0])):
        total += len(_GAP) + max(cell_len(row[column].plain) for row in rows)
        if width is not None and total > width:
            return column
    return len(rows[0])


def wrap(cells: Sequence[str], *, width: int | None) -> list[Text]:
    """Return cells as indented lines, broken only between cells."""
    lines: list[str] = []
    for cell in filter(None, cells):
        if lines and (width is None or cell_len(lines[-1] + _GAP + cell) <= width):
            lines[-1] += _GAP + cell
        else:
            lines.append(_GAP + cell)
    return [Text(line, style="dim") for line in lines]


def between_words(text: str, width: int | None) -> str:
    """Return a sentence in lines of at most this width; a longer word, such as a path, stays whole."""
    if width is None:
        return text
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False, subsequent_indent=_GAP)
    return "\n".join(lines)


def _pad(cell: Text, size: int, at_the_right: bool) -> Text:
    padding = " " * max(0, size - cell_len(cell.plain))
    return Text(padding) + cell if at_the_right else cell + Text(padding)
