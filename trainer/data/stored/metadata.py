"""What `dataset.json` has to contain; the file may have been edited, cut off or written by another program."""

from collections.abc import Callable, Mapping
from typing import Any

from trainer.data.splits import SPLITS
from vertex_gpu_training.userinput.errors import UserError
from vertex_gpu_training.userinput.spelling import quoted

_MAX_IMAGE_SIZE = 2**16


def check_metadata(content: Any, path: str, *, format_version: int) -> None:
    """Refuse the content of a file that `prepare` did not write.

    Args:
        content: What the file contains as JSON.
        path: The file.
        format_version: The one that this version reads.

    Raises:
        UserError: It is not an object, of another version, or a field is missing or of another type.
    """
    if not isinstance(content, dict):
        raise UserError(f"{path!r} is damaged: it is not a JSON object; run prepare again")
    if (found := content.get("format_version")) != format_version:
        raise UserError(f"dataset {path!r} has format {quoted(found)}, expected {format_version}; run prepare again")
    for name, (is_valid, expected) in _FIELDS.items():
        if not is_valid(content.get(name)):
            found = f"is {quoted(content[name])}" if name in content else "is missing"
            raise UserError(f"{path!r}: field {name} {found}; expected {expected}; run prepare again")


def _is_natural(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable() and "/" not in value


def _are(is_item: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(is_item(item) for item in value)


def _per_split(is_item: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(is_item(value.get(split)) for split in SPLITS)


_FIELDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "fingerprint": (lambda value: isinstance(value, str) and value != "", "a text"),
    "class_names": (lambda value: bool(value) and _are(lambda name: isinstance(name, str))(value), "a list of texts"),
    "image_size": (lambda value: _is_natural(value) and 1 <= value <= _MAX_IMAGE_SIZE, "a number of pixels"),
    "num_examples": (_per_split(_is_natural), f"a number for each of {', '.join(SPLITS)}"),
    "shards": (_per_split(_are(_is_name)), f"file names for each of {', '.join(SPLITS)}"),
    "statistics": (lambda value: isinstance(value, dict), "an object"),
}
"""Field -> whether a value is valid, and what is."""
