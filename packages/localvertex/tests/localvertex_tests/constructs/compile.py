"""Writes the compiled files of all constructs: `python -m localvertex_tests.constructs.compile [FOLDER]`.

The files are checked in, so that a run does not depend on the installed kfp; a test compares them with what it writes.
"""

import importlib
import json
import re
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import yaml
from kfp import compiler
from localvertex_tests.constructs.construct import CONSTRUCTS, FOLDER, Construct, documents

_ARCHIVE = re.compile(r"(__KFP_EMBEDDED_ARCHIVE_B64 = ')[^']*")
SOURCES = Path(__file__).parent / "sources"


def all_constructs() -> dict[str, Construct]:
    """Return every construct by name, each the name of its compiled file."""
    for path in sorted(SOURCES.glob("*.py")):
        importlib.import_module(f"localvertex_tests.constructs.sources.{path.stem}")
    return dict(sorted(CONSTRUCTS.items()))


def compiled_documents(construct: Construct) -> list[dict[str, Any]]:
    """Compile a construct and add what kfp does not write; return its one or two documents."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pipeline.yaml"
        compiler.Compiler().compile(construct.pipeline, str(path))
        found = documents(path)
    second = construct.edit(found[0]) if construct.edit else None
    return [*found, second] if second else found


def write(folder: Path) -> None:
    """Compile all constructs into a folder; JSON, and YAML where there are two documents."""
    folder.mkdir(exist_ok=True)
    for name, construct in all_constructs().items():
        found = compiled_documents(construct)
        if len(found) == 1:
            _replace(folder / f"{name}.json", json.dumps(found[0], indent=1, sort_keys=True) + "\n")
        else:
            _replace(folder / f"{name}.yaml", yaml.safe_dump_all(found, sort_keys=True))


def without_archive(text: str) -> str:
    """Return the text of a compiled file without the archive of an embedded folder, which contains a time."""
    return _ARCHIVE.sub(r"\1", text)


def _replace(path: Path, text: str) -> None:
    if not path.exists() or without_archive(path.read_text()) != without_archive(text):
        path.write_text(text)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
