"""`rejected.csv`: every rejected image with the reason; spreadsheets take no name for a formula."""

import contextlib
import csv
import os
from collections.abc import Callable, Iterator

from exact_resume.files import storage
from trainer.data.preparing.rows import Row

FILE = "rejected.csv"
_FORMULA = ("=", "+", "-", "@")
"""Characters that begin a formula. Full-width forms count as well: some spreadsheets convert them."""
_FULL_WIDTH = str.maketrans("\uff1d\uff0b\uff0d\uff20", "=+-@")


@contextlib.contextmanager
def open_writer(directory: storage.Path, class_names: list[str]) -> Iterator[Callable[[Row], None]]:
    """Yield a function that appends a row if it is rejected; the same rows give the same bytes at any time."""
    with open(os.path.join(directory, FILE), "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "class", "reason"])

        def add(row: Row) -> None:
            if row.content_hash is None:
                label = "" if row.label is None else class_names[row.label]
                writer.writerow([cell(text) for text in (row.name, label, row.reason)])

        yield add


def cell(text: str) -> str:
    """Return a text on one line that a spreadsheet shows as it is: with an apostrophe where it could be a formula."""
    shown = text
    if text[:1].isalnum() and text.isprintable():
        return text
    if not text.isprintable():
        shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return f"'{shown}" if shown.lstrip().translate(_FULL_WIDTH).startswith(_FORMULA) else shown
