"""Reading a compiled pipeline file, JSON or YAML, from disk."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compiled.reader import read_pipeline
from compiled.spec import Pipeline
from localvertex.values.json_text import parse_json
from localvertex.values.yaml_text import parse_yaml
from userinput.errors import UserError

MAX_FILE_BYTES = 20 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class PipelineFile:
    """A compiled file that was read: where it is, what is in it, and its digest."""

    path: Path
    sha256: str
    pipeline: Pipeline


def load(path: Path) -> PipelineFile:
    """Reads a compiled pipeline.

    Raises:
        UserError: in one line, that the file is missing, too large, broken, or no pipeline.
    """
    text = read_text(path)
    try:
        is_json = path.suffix == ".json" or text.lstrip().startswith("{")
        documents = [parse_json(text, str(path))] if is_json else parse_yaml(text)
        pipeline = parse_documents(documents)
    except UserError as error:
        raise UserError(f"{path}: {str(error).removeprefix(f'{path}: ')}") from None
    except RecursionError:
        raise UserError(f"{path}: nested too deep for a pipeline") from None
    return PipelineFile(path=path.resolve(), sha256=hashlib.sha256(text.encode()).hexdigest(), pipeline=pipeline)


def read_text(path: Path, *, advice: str = "compile the pipeline first") -> str:
    """The text of the file; `advice` is for somebody who names a file that is not there.

    Raises:
        UserError: it is not there, not a file, too large, or not text.
    """
    if path.is_dir():
        raise UserError(f"{path} is a directory; name the compiled .json or .yaml file in it")
    if path.exists() and not path.is_file():
        raise UserError(f"{path} is not a regular file")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if len(data) > MAX_FILE_BYTES:
            raise UserError(f"{path} is larger than {MAX_FILE_BYTES >> 20} MiB; a compiled pipeline is much smaller")
        return data.decode("utf-8")
    except FileNotFoundError:
        raise UserError(f"{path} does not exist; {advice}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not a text file (UTF-8); expected a compiled .json or .yaml pipeline") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None


def parse_documents(documents: list[Any]) -> Pipeline:
    """The pipeline of one document, or of two: the second holds what only one platform understands."""
    if not documents or len(documents) > 2:
        raise UserError(f"one pipeline spec expected (and at most one platform spec), found {len(documents)} documents")
    for document in documents:
        if not isinstance(document, dict):
            raise UserError(f"this is not a compiled pipeline: an object expected, found {type(document).__name__}")
    return read_pipeline(documents[0], documents[1] if len(documents) == 2 else {})
