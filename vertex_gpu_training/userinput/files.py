"""Small files that are replaced as a whole: readers see the old content or the new one, never a part."""

import os
from collections.abc import Mapping
from pathlib import Path

_LONGEST_NAME = 200
"""File systems take 255 bytes; the rest is for what makes a temporary name unique."""


def write_text(path: str | Path, text: str, *, mode: int = 0o666) -> None:
    """Write a file in UTF-8, replacing it as a whole; `mode` has its permissions, from which the umask is removed.

    Raises:
        OSError: It cannot be written; an old file is unchanged and no temporary file is left.
    """
    write_all({Path(path): text.encode()}, mode=mode)


def write_all(contents: Mapping[Path, bytes], *, mode: int = 0o666) -> None:
    """Write several files, none of which is replaced before all are on the disk.

    Raises:
        OSError: One cannot be written; no temporary file is left.
    """
    asides: dict[Path, Path] = {}
    try:
        for path, data in contents.items():
            # Unique, so that two writers do not write into the same file, and in the same folder, so that a rename
            # replaces the old file in one operation.
            name = f".{path.name[:_LONGEST_NAME]}.{os.urandom(4).hex()}.partial"
            asides[path] = path.parent / name
            _write(asides[path], data, mode)
        for path, aside in asides.items():
            os.replace(aside, path)
    except BaseException:
        for aside in asides.values():
            aside.unlink(missing_ok=True)
        raise


def _write(path: Path, data: bytes, mode: int) -> None:
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, mode)) as file:
        file.write(data)
        file.flush()
        # Without it a power cut may publish an empty file under the final name.
        os.fsync(file.fileno())
