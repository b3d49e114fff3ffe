"""Reading a compiled pipeline file, JSON or YAML, from disk."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compiled.reader import read_pipeline
from compiled.spec import Pipeline
from userinput import reading
from userinput.errors import UserError


@dataclass(frozen=True, kw_only=True)
class PipelineFile:
    """A compiled file that was read: where it is, what is in it, and its digest."""

    path: Path
    sha256: str
    pipeline: Pipeline


def load(path: Path) -> PipelineFile:
    """Return the pipeline of a compiled file.

    Raises:
        UserError: The file is missing, too large, broken, or not a pipeline.
    """
    if not path.exists():
        raise UserError(f"{reading.shown(path)} does not exist; compile the pipeline first")
    if not path.is_file() and not path.is_dir():
        raise UserError(f"{path} is not a regular file")
    data, name = reading.read_bytes(path), reading.shown(path)
    documents = reading.parse_all(data, name, only_json_values=True)
    try:
        pipeline = parse_documents(documents)
    except UserError as error:
        raise UserError(f"{name}: {error}") from None
    return PipelineFile(path=path.resolve(), sha256=hashlib.sha256(data).hexdigest(), pipeline=pipeline)


def parse_documents(documents: list[Any]) -> Pipeline:
    """The pipeline of one document, or of two: the second holds what only one platform understands."""
    if not documents or len(documents) > 2:
        raise UserError(f"one pipeline spec expected (and at most one platform spec), found {len(documents)} documents")
    for document in documents:
        if not isinstance(document, dict):
            raise UserError(f"this is not a compiled pipeline: an object expected, found {type(document).__name__}")
    return read_pipeline(documents[0], documents[1] if len(documents) == 2 else {})
