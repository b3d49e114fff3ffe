"""Which checkpoints of a command are whole, by a rule that the user states; time alone proves nothing.

| rule | an entry that matches PATTERN is whole |
|---|---|
| `rename:PATTERN` | because the command gives it this name when it is complete |
| `marker:PATTERN/FILE` | if the folder has this file, and none of its files is newer |
| `header:PATTERN` | if its header or directory states its length: safetensors, zip (npz, keras, pt), HDF5 |

Nothing is unpickled. Links, and names that begin with a dot, never match.
"""

import contextlib
import dataclasses
import fnmatch
import json
import os
import stat
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Literal, get_args

from exact_resume.errors import InputError
from exact_resume.text import quote

_Kind = Literal["rename", "marker", "header"]
_LONGEST_HEADER_BYTES = 100_000_000
"""The limit of the safetensors format."""
_HDF5 = b"\x89HDF\r\n\x1a\n"
_HDF5_LAYOUTS = {0: (13, 40), 1: (13, 44), 2: (9, 28), 3: (9, 28)}
"""Version of the superblock -> offsets of the size of addresses, and of the end-of-file address if they have 8 bytes
(HDF5 File Format Specification, II.A)."""
_ZIP_END_BYTES = 22
"""Of the end record without a comment (APPNOTE.TXT, 4.3.16)."""


class NotWhole(Exception):
    """A checkpoint does not count; the message has the reason."""


Files = frozenset[tuple[str, int, int, int]]
"""Of an entry, one file or all below a folder: path relative to the command's folder, inode, bytes, and time of the
last change in nanoseconds."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rule:
    """When an entry of the command's folder is a whole checkpoint."""

    kind: _Kind
    pattern: str
    """For the name of an entry, as in a shell."""
    marker: str = ""
    """Path of the marker within the entry."""

    @classmethod
    def parse(cls, text: str) -> "Rule":
        """Return the rule of a text, such as `marker:checkpoint-*/done`.

        Raises:
            InputError: It has another form.
        """
        kind, _, rest = text.partition(":")
        pattern, _, marker = rest.partition("/")
        is_outside = any(part in ("", ".", "..") for part in marker.split("/"))
        if kind not in get_args(_Kind) or not pattern or (is_outside if kind == "marker" else "/" in rest):
            raise InputError(
                f"--whole={quote(text)} is not a rule; expected rename:PATTERN, marker:PATTERN/FILE or header:PATTERN,"
                " such as 'rename:checkpoint-*'"
            )
        return cls(kind=kind, pattern=pattern, marker=marker)  # type: ignore[arg-type]

    def names(self, folder: Path) -> list[str]:
        """Return the names of all entries that match; links never do."""
        found = [each.name for each in folder.iterdir() if not each.is_symlink()] if folder.is_dir() else []
        return sorted(each for each in found if fnmatch.fnmatchcase(each, self.pattern) and not each.startswith("."))

    def look(self, folder: Path, name: str) -> Files:
        """Return the files of an entry as they are now.

        Raises:
            NotWhole: It is not whole.
            OSError: It was removed, or cannot be read now.
        """
        path = folder / name
        is_folder = stat.S_ISDIR(path.lstat().st_mode)
        files = {
            each.relative_to(folder).as_posix(): _regular(each) for each in (_below(path) if is_folder else [path])
        }
        if not files or (self.kind == "header" and is_folder):
            raise NotWhole("it is an empty folder" if not files else "it is a folder, and only files have a header")
        if self.kind == "header":
            _check_header(path)
        if self.kind == "marker":
            if not (marker := files.get(f"{name}/{self.marker}")):
                raise NotWhole(f"it has no file {self.marker}")
            if max(found.st_mtime_ns for found in files.values()) > marker.st_mtime_ns:
                raise NotWhole(f"a file is newer than its {self.marker}")
        return frozenset((each, at.st_ino, at.st_size, at.st_mtime_ns) for each, at in files.items())


def changed_ns(files: Files) -> int:
    """Return the time of the last change of any file, in nanoseconds."""
    return max(file[3] for file in files)


def _below(folder: Path) -> Iterator[Path]:
    for each in folder.iterdir():
        if stat.S_ISDIR(each.lstat().st_mode):
            yield from _below(each)
        else:
            yield each


def _regular(path: Path) -> os.stat_result:
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise NotWhole(f"{quote(path.name)} is neither a file nor a folder")
    return found


def _check_header(path: Path) -> None:
    """Refuse a file that is shorter or longer than its own header says.

    Raises:
        NotWhole: It is, or has no such header.
    """
    with path.open("rb") as file:
        size, head = os.fstat(file.fileno()).st_size, file.read(64)
        if head.startswith(_HDF5):
            length = _hdf5_length(head)
        elif head.startswith(b"PK"):
            _check_zip(file)
            length = size
        else:
            file.seek(8)
            length = _safetensors_length(head, file.read(min(_LONGEST_HEADER_BYTES, _number(head[:8]))))
    if length != size:
        raise NotWhole(f"it has {size} bytes, and its header says {length}")


def _check_zip(file: BinaryIO) -> None:
    file.seek(-min(_ZIP_END_BYTES, file.seek(0, os.SEEK_END)), os.SEEK_END)
    end = file.read()
    # A zip file within the zip file ends with a directory, too, of files that begin later.
    if end.startswith(b"PK\5\6") and end.endswith(b"\0\0"):
        with contextlib.suppress(zipfile.BadZipFile, ValueError, NotImplementedError, struct.error):
            if min((each.header_offset for each in zipfile.ZipFile(file).infolist()), default=-1) == 0:
                return
    raise NotWhole("its directory, which ends a zip file, is missing or damaged")


def _number(data: bytes) -> int:
    return int.from_bytes(data, "little")


def _hdf5_length(head: bytes) -> int:
    size_of_addresses, end = _HDF5_LAYOUTS.get(head[8] if len(head) > 8 else -1, (0, 0))
    if not end or len(head) < end + 8 or head[size_of_addresses] != 8:
        raise NotWhole("its HDF5 superblock is cut off or of an unknown version")
    return _number(head[end : end + 8])


def _safetensors_length(head: bytes, header: bytes) -> int:
    try:
        if not 8 <= len(head) or len(header) != _number(head[:8]):
            raise ValueError
        tensors = {name: each for name, each in json.loads(header).items() if name != "__metadata__"}
        return 8 + len(header) + max((int(each["data_offsets"][1]) for each in tensors.values()), default=0)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        raise NotWhole("it is not a safetensors, zip or HDF5 file, or its header is cut off") from None
