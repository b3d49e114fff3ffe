"""Files here and on gs://: the one module that knows the difference. Local paths never import TensorFlow."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from typing import Any

from etils import epath


def is_object_store(path: str | os.PathLike[str]) -> bool:
    """Whether the path is in a bucket, as gs://... or mounted as /gcs/...: no folder can be renamed there.

    The mount (Cloud Storage FUSE) refuses to rename folders with content unless told otherwise (--rename-dir-limit).
    """
    return "://" in os.fspath(path) or os.fspath(path).startswith("/gcs/")


def is_occupied(final: str | os.PathLike[str], *, last: str) -> bool:
    """Whether `committed_directory` would refuse the place.

    Locally: something is there, other than an empty folder. In a bucket: the file that is written last is there; what
    writers left that did not get so far does not count.
    """
    target = epath.Path(final)
    if is_object_store(target):
        return bool((target / last).exists())
    return bool(target.exists() and (not target.is_dir() or any(target.iterdir())))


@contextlib.contextmanager
def committed_directory(final: str | os.PathLike[str], *, last: str) -> Iterator[epath.Path]:
    """A local folder to write into, whose content is at `final` when the block ends well, and not before.

    Locally by one last rename. To a bucket the files are copied, and `last`, without which readers ignore the others,
    is copied when all others are there.

    Args:
        final: local, gs:// or /gcs/; need not exist.
        last: path of a file below the folder.

    Raises:
        FileExistsError: the place is occupied.
    """
    target = epath.Path(final)
    if is_occupied(target, last=last):
        raise FileExistsError(f"{target} exists and is not empty")
    if is_object_store(target):
        with tempfile.TemporaryDirectory(prefix="upload-") as scratch:
            yield epath.Path(scratch)
            _upload(pathlib.Path(scratch), target, last)
        return
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
    if is_object_store(parent) or not parent.is_dir():
        return
    for entry in parent.iterdir():
        if entry.name.startswith(".") and entry.name.endswith(".partial"):
            shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink()


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file so that readers see the old content or the new one, never a part."""
    target = epath.Path(path)
    if is_object_store(target):
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


def _upload(source: pathlib.Path, target: epath.Path, last: str) -> None:
    files = sorted(path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file())
    for name in sorted(files, key=lambda name: name == last):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        epath.Path(source / name).copy(target / name, overwrite=True)
