"""Reading a compiled pipeline file, JSON or YAML, from the disk."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from localvertex._base.compiled.reader import read_pipeline
from localvertex._base.compiled.spec import Pipeline
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput import reading
from localvertex._base.userinput.errors import UserError


@dataclass(frozen=True, kw_only=True)
class PipelineFile:
    """A compiled file that was read."""

    path: Path
    sha256: str
    """Digest of its bytes."""
    pipeline: Pipeline


def load(path: Path) -> PipelineFile:
    """Return the pipeline of a compiled file.

    Raises:
        UserError: The file is missing, too large, broken, or not a pipeline without problems.
    """
    # Unlike Path's methods, these functions accept names that are too long.
    if not os.path.exists(path):
        raise UserError(f"{reading.display(path)} does not exist; compile the pipeline first")
    if not os.path.isfile(path) and not os.path.isdir(path):
        raise UserError(f"{path} is not a regular file")
    data, name = reading.read_bytes(path), reading.display(path)
    pipeline = pipeline_of(documents_of(data, name), name)
    return PipelineFile(path=path.resolve(), sha256=hashlib.sha256(data).hexdigest(), pipeline=pipeline)


def documents_of(data: bytes, name: str) -> list[JsonObject]:
    """Return the documents of a compiled file: the pipeline, and in YAML perhaps the settings of platforms.

    Args:
        data: The content of the file.
        name: The name of the file, whose end is its format.

    Raises:
        UserError: It is not a compiled file.
    """
    try:
        documents = reading.parse_all(data, name, only_json_values=True)
    except UserError:
        if name.endswith((".json", ".yaml", ".yml")):
            raise
        # Another file is refused by its name, rather than by what YAML expects.
        advice = "give the .json or .yaml file that kfp's compiler wrote"
        raise UserError(f"{name} is not a compiled pipeline; {advice}") from None
    if not documents or len(documents) > 2:
        raise UserError(
            f"{name}: expected one pipeline spec (and at most one platform spec), found {len(documents)} documents"
        )
    for document in documents:
        if not isinstance(document, dict):
            kind = type(document).__name__
            raise UserError(f"{name}: this is not a compiled pipeline: expected an object, found {kind}")
    return documents


def pipeline_of(documents: list[JsonObject], name: str) -> Pipeline:
    """Return the pipeline of the documents of a compiled file.

    Raises:
        UserError: It has problems; the message has the first.
    """
    pipeline = read_pipeline(*documents)
    if pipeline.problems:
        raise UserError(f"{name}: {pipeline.problems[0]}")
    return pipeline
