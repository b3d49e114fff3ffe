"""CSV lines of Vertex AI: `[ml_use,]address[,label]`; each line is read by itself, so that no quote swallows others."""

import csv
import os

from localvertex._base.userinput.spelling import quote
from trainer.data.sources.manifests.entry import ML_USES, BadLine, Entry, OtherTask, clean_label, split_of

_OTHER_FILES = {
    **dict.fromkeys((".txt", ".pdf", ".html", ".json", ".jsonl"), "text"),
    **dict.fromkeys((".mp4", ".mov", ".avi", ".mpeg4", ".webm", ".mkv"), "video"),
}
"""Endings in lower case of what Vertex AI's other tasks are about."""


def parse(text: str, *, is_labelled: bool = True) -> Entry:
    """Return what a line states; without labels, all that follows the address is ignored.

    Raises:
        BadLine: It cannot be used.
        OtherTask: It has several labels, or coordinates.
    """
    fields = _fields(text)
    split = None
    if len(fields) > 1 and fields[0].lower() in ML_USES:
        split = split_of(fields.pop(0))
    elif len(fields) > 1 and fields[1].startswith("gs://"):
        # Vertex AI writes nothing or a word before the address.
        if word := fields.pop(0):
            split_of(word)
    address, labels = fields[0], [field for field in fields[1:] if field]
    for name, separator in (("semicolons", ";"), ("tabs", "\t")):
        if is_labelled and not labels and separator in address and not {".", "/"} & set(address.split(separator)[-1]):
            raise BadLine(f"separated by {name}; save the file with commas")
    if not address:
        raise BadLine("no image")
    # Without this, a header would be an image and a class, or several labels.
    if not {".", "/"} & set(address):
        raise BadLine(f"{quote(address)} is not a path with a folder or an ending; the format has no header")
    if kind := _OTHER_FILES.get(os.path.splitext(address)[1].lower()):
        raise BadLine(f"a file of a manifest for {kind}; expected an image")
    if not is_labelled:
        return Entry(address=address, label="", split=None)
    if len(labels) > 1:
        raise OtherTask("object detection" if all(map(_is_number, labels[1:])) else "multi-label classification")
    return Entry(address=address, label=clean_label("".join(labels)), split=split)


def _fields(text: str) -> list[str]:
    """Return the fields without surrounding spaces, and without the empty ones that spreadsheets add at the end."""
    try:
        (fields,) = csv.reader([text], strict=True, skipinitialspace=True)
    except csv.Error as error:
        raise BadLine(f"not CSV on one line: {error}") from None
    fields = [field.strip() for field in fields]
    while len(fields) > 1 and not fields[-1]:
        fields.pop()
    return fields


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
