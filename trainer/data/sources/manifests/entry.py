"""What a line of a manifest states about one image, and the ways in which it can be wrong."""

import re
from dataclasses import dataclass

from localvertex._base.userinput.spelling import quote

ML_USES = {
    "training": "train",
    "train": "train",
    "validation": "validation",
    "test": "test",
    "unassigned": "",
}
"""Vertex AI's word in lower case -> split; empty: prepare decides."""
_MAX_LABEL_LENGTH = 128
"""The longest display name that Vertex AI takes, in characters."""
CONTROL_CHARACTER = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Also halves of characters, which JSON can write and UTF-8 cannot."""


class BadLine(Exception):
    """A line that cannot be used; the message is the reason."""


class OtherTask(Exception):
    """A line of a manifest for something else than one label per image; the message names it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One line, not resolved yet."""

    address: str
    """Of the image, as written."""
    label: str
    split: str | None
    """A split, empty for UNASSIGNED, or None where the line has no ml_use."""


def split_of(ml_use: str) -> str:
    """Return the split of Vertex AI's word.

    Raises:
        BadLine: It is not one of them.
    """
    if (split := ML_USES.get(ml_use.lower())) is None:
        raise BadLine(f"ml_use {quote(ml_use)}; expected training, validation, test or UNASSIGNED")
    return split


def clean_label(label: str) -> str:
    """Return a label without surrounding spaces.

    Raises:
        BadLine: It is empty, too long, or contains control characters.
    """
    label = label.strip()
    if not label:
        raise BadLine("no label")
    if len(label) > _MAX_LABEL_LENGTH:
        raise BadLine(f"label {quote(label)} is longer than {_MAX_LABEL_LENGTH} characters")
    if CONTROL_CHARACTER.search(label):
        raise BadLine(f"label {quote(label)} has a control character")
    return label
