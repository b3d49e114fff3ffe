"""Files here and on gs://: the one module that knows the difference. Local paths never import TensorFlow."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import uuid
from collections.abc import Iterator
from typing import Any

from etils import epath


def is_remote(path: str | os.PathLike[str]) -> bool:
    """Whether the path is an object store's (gs://...), which can rename no folder."""
    return "://" in os.fspath(path)


@contextlib.contextmanager
def committed_directory(final: str | os.PathLike[str]) -> Iterator[epath.Path]:
    """A folder to write into, which becomes `final` when the block ends well, and never existed when it does not.

    Locally by one last rename; `final` may exist if it is empty. An object store cannot rename: there the block
    writes in place, and must write the file that readers take as the mark of completeness last.

    Raises:
        FileExistsError: `final` exists and holds something.
    """
    target = epath.Path(final)
    if is_remote(target):
        yield target
        return
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileExistsError(f"{target} exists and is not empty")
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.parent / f".{target.name}.{uuid.uuid4().hex[:8]}.partial"
    aside.mkdir()
    try:
        yield aside
        _flush_to_disk(aside)
        # A rename onto an existing empty folder replaces it in one step (POSIX rename).
        os.rename(aside, target)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def remove_partial(directory: str | os.PathLike[str]) -> None:
    """Remove what writers that were killed left in a folder. Only while no other writer is at work there."""
    parent = epath.Path(directory)
    if is_remote(parent) or not parent.is_dir():
        return
    for entry in parent.iterdir():
        if entry.name.startswith(".") and entry.name.endswith(".partial"):
            shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink()


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file so that readers see the old content or the new one, never a part."""
    target = epath.Path(path)
    if is_remote(target):
        target.write_text(text)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.parent / f".{target.name}.{uuid.uuid4().hex[:8]}.partial"
    with open(aside, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, target)


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write a JSON file as `write_text` does."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def read_json(path: str | os.PathLike[str]) -> Any:
    """The content of a JSON file, or None where there is no such file or it is not JSON."""
    try:
        return json.loads(epath.Path(path).read_text())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None


def append_line(path: str | os.PathLike[str], line: str) -> None:
    """Add a line to a file; several processes may do so on a local file."""
    target = epath.Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("a") as file:
        file.write(line + "\n")


def _flush_to_disk(directory: epath.Path) -> None:
    """Make the content durable before the rename that publishes it, so that a power cut cannot publish empty files."""
    for folder, _, names in os.walk(directory):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                os.fsync(file.fileno())


def publish(source: str, final: str, *, last: str) -> int:
    """Copy a local folder to its place, where it appears whole or not at all.

    Args:
        source: local folder.
        final: new or empty, local or gs://.
        last: path below `source` of the file without which readers ignore the folder; written last on gs://.

    Returns:
        Bytes copied.
    """
    names = sorted(
        os.path.relpath(os.path.join(folder, name), source) for folder, _, found in os.walk(source) for name in found
    )
    num_bytes = 0
    with committed_directory(final) as target:
        for name in sorted(names, key=lambda name: name == last):
            data = pathlib.Path(source, name).read_bytes()
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes(data)
            num_bytes += len(data)
    return num_bytes
