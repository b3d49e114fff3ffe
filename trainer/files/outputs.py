"""Files and folders that users name for output, locally or on gs://: refused before the work, or written after it."""

import mmap
import pathlib
import tempfile
from collections.abc import Iterable

from exact_resume.files import storage
from localvertex._base.userinput import outputs, paths


def check_folder(name: str, path: str) -> None:
    """Refuse a folder for output that cannot be used; one in a bucket is tried when it is needed.

    Args:
        name: The flag or parameter, which begins the message.
        path: Local or gs://; it need not exist.

    Raises:
        UserError: The path is not valid, or it is local and nothing can be written there.
    """
    paths.check(name, path)
    if not storage.is_object_store(path):
        outputs.check_folder(name, path)


def check_file(name: str, path: str) -> None:
    """Refuse a file for output that cannot be written; one in a bucket is tried when it is written.

    Raises:
        UserError: The path is not valid, or it is local and cannot be written.
    """
    paths.check(name, path)
    if not storage.is_object_store(path):
        outputs.check_file(name, path)


def write(path: storage.Path, text: str) -> None:
    """Write a text to a file that the user named, which may also be a link."""
    if storage.is_object_store(path):
        storage.write_text(path, text)
        return
    outputs.write({pathlib.Path(path): text.encode(errors="replace")})


def write_lines(path: str, lines: Iterable[str]) -> None:
    """Write lines to a file that the user named, as `write`; they are never in memory together."""
    with tempfile.TemporaryFile() as file:
        file.writelines(line.encode(errors="replace") for line in lines)
        file.flush()
        if storage.is_object_store(path):
            storage.write_file(path, file)
        elif not file.tell():
            # An empty file cannot be mapped.
            write(path, "")
        else:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as content:
                outputs.write({pathlib.Path(path): content})
