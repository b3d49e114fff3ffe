"""`datasets.json` in the work folder: the user's own files, by the names of datasets in Vertex AI.

    {"projects/my-project/locations/us-central1/datasets/123": "../data/flowers"}

A relative path starts at the work folder.
"""

import json
from pathlib import Path

from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.reading import read
from localvertex_base.userinput.spelling import quote

FILE = "datasets.json"


def find(work_dir: Path, name: str) -> Path:
    """Return the absolute path that the file gives for a dataset.

    Raises:
        UserError: The file cannot be read or has no such dataset, or the path does not exist.
    """
    manifest = work_dir / FILE
    entry = json.dumps({name: "PATH"})
    if not manifest.is_file():
        raise UserError(f"the dataset {name} is not on this machine; write {entry} to {manifest}")
    content = read(manifest)
    if not isinstance(content, dict):
        raise UserError(f"{manifest}: expected an object like {entry}, found {quote(content)}")
    if name not in content:
        raise UserError(f"{manifest} has no dataset {name}; add {entry}")
    if not isinstance(content[name], str) or not (work_dir / content[name]).exists():
        raise UserError(f"{manifest}: the path {quote(content[name], 200)} of {name} does not exist")
    return (work_dir / str(content[name])).resolve()


def text_of(work_dir: Path) -> str:
    """Return the file as text, with its paths made absolute if it can be read; empty when there is none."""
    manifest = work_dir / FILE
    if not manifest.is_file():
        return ""
    text = manifest.read_text(errors="replace")
    try:
        content = read(manifest)
    except UserError:
        return text
    paths = content.values() if isinstance(content, dict) else []
    return text + json.dumps([str((work_dir / each).resolve()) for each in paths if isinstance(each, str)])
