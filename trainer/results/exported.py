"""Metadata of an exported model, read before TensorFlow is imported."""

import os
from typing import Any

from exact_resume.files import storage
from localvertex._base.userinput.errors import UserError
from trainer.checkpoints import seen

METADATA_FILE = os.path.join("assets.extra", "model.json")
"""TensorFlow Serving ignores assets.extra, which is meant for additional files."""
SEEN_FILE = os.path.join("assets.extra", seen.FILE)
"""The images that the model must not be tested on."""
TESTED_FILE, TESTED_TYPE = os.path.join("assets.extra", "tested_images"), ">u8"
"""The images of its test split: the first 8 bytes of each SHA-256."""
_GRAPH_FILE = "saved_model.pb"


def read(directory: str) -> dict[str, Any]:
    """Return the metadata of an exported model.

    Raises:
        UserError: The folder is not a model that `trainer.results.saved_model.write` wrote.
    """
    metadata = storage.read_json(storage.join(directory, METADATA_FILE))
    if not isinstance(metadata, dict) or not storage.exists(storage.join(directory, _GRAPH_FILE)):
        raise UserError(
            f"no exported model at {directory!r}: expected {_GRAPH_FILE} and {METADATA_FILE}; make one with"
            " `python -m trainer.export`"
        )
    names, size = metadata.get("class_names"), metadata.get("image_size")
    is_named = (
        isinstance(names, list)
        and names
        and all(isinstance(name, str) and name.strip() for name in names)
        and len(set(names)) == len(names)
    )
    if not is_named or type(size) is not int or size < 1:
        raise UserError(
            f"model {directory!r} is damaged ({METADATA_FILE} has no image_size, or no class_names that all differ);"
            " export it again"
        )
    return metadata
