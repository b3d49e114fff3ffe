"""The lines of a manifest: read one by one within bounded memory, and what each states about one image.

CSV is `[ml_use,]address[,label]`; each line is read by itself, so that no quote swallows others. JSON Lines have
`imageGcsUri`, `classificationAnnotation` and `dataItemResourceLabels`.
"""

import csv
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from localvertex._base.userinput.spelling import quote
from localvertex._base.userinput.unique_keys import RepeatedKey, load_json

_ML_USES = {
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
"""Control characters, and halves of characters, which JSON can write and UTF-8 cannot."""


MAX_LINE_BYTES = 2**16
"""Longer lines are bad: an address has at most 1,024 bytes, and a label 128 characters."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OTHER_FILES = {
    **dict.fromkeys((".txt", ".pdf", ".html", ".json", ".jsonl"), "text"),
    **dict.fromkeys((".mp4", ".mov", ".avi", ".mpeg4", ".webm", ".mkv"), "video"),
}
"""Endings in lower case of what Vertex AI's other tasks are about."""
_ML_USE = "aiplatform.googleapis.com/ml_use"
_OTHER_KEYS = {
    "multiLabelClassificationAnnotation": "multi-label classification",
    "multiLabelClassificationAnnotations": "multi-label classification",
    "boundingBoxAnnotation": "object detection",
    "boundingBoxAnnotations": "object detection",
    **dict.fromkeys(
        (
            *("segmentationAnnotation", "segmentationAnnotations", "maskAnnotation", "maskAnnotations"),
            *("polygonAnnotation", "polygonAnnotations", "polylineAnnotation", "polylineAnnotations"),
        ),
        "image segmentation",
    ),
    **dict.fromkeys(("textContent", "textGcsUri", "textSegmentAnnotations", "sentimentAnnotation"), "text"),
    **dict.fromkeys(("videoGcsUri", "timeSegmentAnnotations", "temporalBoundingBoxAnnotations"), "video"),
}
"""Keys that only manifests of another task have."""


class BadLine(Exception):
    """A line that cannot be used; the message is the reason."""


class OtherTask(Exception):
    """A line of a manifest for something else than one label per image; the message names it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One line, not resolved yet."""

    address: str
    """Address of the image, as written."""
    label: str
    split: str | None
    """A split, empty for UNASSIGNED, or None where the line has no ml_use."""


def _split_of(ml_use: str) -> str:
    """Return the split of Vertex AI's word.

    Raises:
        BadLine: It is not one of them.
    """
    if (split := _ML_USES.get(ml_use.lower())) is None:
        raise BadLine(f"ml_use {quote(ml_use)}; expected training, validation, test or UNASSIGNED")
    return split


def _clean_label(label: str) -> str:
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


def number_lines(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Yield number and content of each line, without its end; the content is None if it is too long."""
    number = 0
    while line := file.readline(MAX_LINE_BYTES):
        number += 1
        if number == 1:
            line = line.removeprefix(_BYTE_ORDER_MARK)
        if line.endswith(b"\n") or len(line) < MAX_LINE_BYTES:
            yield number, line.strip()
            continue
        while (rest := file.readline(MAX_LINE_BYTES)) and not rest.endswith(b"\n"):
            pass
        yield number, None


def text_of(line: bytes | None) -> str:
    """Return a line of `number_lines` as text.

    Raises:
        BadLine: It is too long, not UTF-8, or contains null characters.
    """
    if line is None:
        raise BadLine(f"longer than {MAX_LINE_BYTES:,} bytes")
    if b"\0" in line:
        raise BadLine("a null character; expected UTF-8")
    try:
        return line.decode()
    except UnicodeDecodeError:
        raise BadLine("not UTF-8") from None


def parse_csv(text: str, *, is_labelled: bool = True) -> Entry:
    """Return what a line states; without labels, all that follows the address is ignored.

    Raises:
        BadLine: It cannot be used.
        OtherTask: It has several labels, or coordinates.
    """
    fields = _fields(text)
    split = None
    if len(fields) > 1 and fields[0].lower() in _ML_USES:
        split = _split_of(fields.pop(0))
    elif len(fields) > 1 and fields[1].startswith("gs://"):
        # Vertex AI writes nothing or a word before the address.
        if word := fields.pop(0):
            _split_of(word)
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
    return Entry(address=address, label=_clean_label("".join(labels)), split=split)


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


def parse_json(text: str, *, is_labelled: bool = True) -> Entry:
    """Return what a line states; without labels, all but the address is ignored.

    Raises:
        BadLine: It cannot be used.
        OtherTask: It has several labels, or a key of another task.
    """
    value = _object(text)
    if is_labelled and (other := _OTHER_KEYS.keys() & value.keys()):
        raise OtherTask(_OTHER_KEYS[min(other)])
    address = value.get("imageGcsUri")
    if not isinstance(address, str) or not address.strip():
        raise BadLine("no imageGcsUri")
    if not is_labelled:
        return Entry(address=address.strip(), label="", split=None)
    return Entry(address=address.strip(), label=_label(value), split=_split(value))


def _object(text: str) -> dict[str, Any]:
    try:
        value = load_json(text)
    except RepeatedKey:
        raise BadLine("not JSON: a key is repeated") from None
    except RecursionError:
        raise BadLine("not JSON: nested too deeply") from None
    except json.JSONDecodeError as error:
        raise BadLine(f"not JSON: {error.msg}, column {error.colno}") from None
    except ValueError as error:
        # Python's advice on long numbers comes after a semicolon.
        raise BadLine(f"not JSON: {str(error).partition(';')[0]}") from None
    if not isinstance(value, dict):
        raise BadLine("not a JSON object")
    return value


def _label(value: dict[str, Any]) -> str:
    """Return the label. Jobs get it in a list, `classificationAnnotations`, which also holds several labels."""
    several = value.get("classificationAnnotations") or []
    if not isinstance(several, list):
        raise BadLine("classificationAnnotations is not a list")
    single = value.get("classificationAnnotation")
    annotations = several if single is None else [single, *several]
    names = [each.get("displayName") if isinstance(each, dict) else None for each in annotations]
    if not names:
        raise BadLine("no label")
    if not all(isinstance(name, str) for name in names):
        raise BadLine("an annotation without the text displayName")
    first, *others = {_clean_label(str(name)) for name in names}
    if others:
        raise OtherTask("multi-label classification")
    return first


def _split(value: dict[str, Any]) -> str | None:
    labels = value.get("dataItemResourceLabels")
    if labels is None:
        return None
    if not isinstance(labels, dict):
        raise BadLine("dataItemResourceLabels is not a JSON object")
    ml_use = labels.get(_ML_USE)
    if ml_use is None:
        return None
    if not isinstance(ml_use, str):
        raise BadLine("ml_use is not text")
    return _split_of(ml_use)
