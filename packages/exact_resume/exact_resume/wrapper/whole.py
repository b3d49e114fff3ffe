"""Which checkpoints of a command are whole, by a rule that the user states; time alone proves nothing.

| rule | an entry that matches PATTERN is whole |
|---|---|
| `rename:PATTERN` | because the command gives it this name when it is complete; without any byte it is not |
| `marker:PATTERN/FILE` | if the folder has this file, and none of its files is newer |
| `header:PATTERN` | if it is a zip file (pt, npz, keras) whose directory, at the end, is complete |
| `closed:PATTERN` | once its writer has closed it; zip files, JSON and safetensors must also be complete |

Nothing is unpickled. Links and names that begin with a dot do not count.
"""

import contextlib
import dataclasses
import glob
import json
import re
import stat
import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path

from exact_resume.errors import InputError
from exact_resume.text import quote

_FORM = re.compile(r"(rename|header|closed):[^/.][^/]*|marker:[^/.][^/]*/.+")
_NAME = re.compile(r"[^/.][^/]*")
Files = dict[str, tuple[int, int, int]]
"""Files of an entry, which is a file or a folder: path relative to the command's folder -> time of the last change in
nanoseconds, inode and bytes."""


class NotWhole(InputError):
    """A checkpoint does not count."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rule:
    """When an entry of the command's folder is a whole checkpoint.

    Attributes:
        folder: The command's folder.
        kind: rename, marker, header or closed.
        pattern: Pattern for the name of an entry, as in a shell.
        marker: Path of the marker within the entry; empty: the rule has no marker.
        also: Patterns of names that belong to each checkpoint and are not checkpoints by themselves.
    """

    folder: Path
    kind: str
    pattern: str
    marker: str
    also: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, folder: Path, also: Sequence[str] = ()) -> "Rule":
        """Return the rule of a text, such as `marker:checkpoint-*/done`.

        Raises:
            InputError: It has another form.
        """
        if not _FORM.fullmatch(text):
            raise InputError(
                f"--whole={quote(text)} is not a rule; expected rename:PATTERN, marker:PATTERN/FILE, header:PATTERN or"
                " closed:PATTERN, such as 'rename:checkpoint-*'"
            )
        for each in also:
            if not _NAME.fullmatch(each):
                raise InputError(
                    f"--also={quote(each)} is not a pattern of names in --watch; expected one without / and not hidden,"
                    " such as 'best.*'"
                )
        kind, _, rest = text.partition(":")
        pattern, _, marker = rest.partition("/")
        return cls(folder=folder, kind=kind, pattern=pattern, marker=marker, also=tuple(also))

    @property
    def own(self) -> Path:
        """The wrapper's folder within the command's."""
        return self.folder / ".exact_resume"

    def names(self) -> list[str]:
        """Return the names of all entries that match; links never do."""
        return sorted({*self._matching(self.pattern)}.difference(self.names_also()))

    def names_also(self) -> list[str]:
        """Return the names of what belongs to each checkpoint."""
        return sorted({name for pattern in self.also for name in self._matching(pattern)})

    def _matching(self, pattern: str) -> list[str]:
        return [name for name in glob.glob(pattern, root_dir=self.folder) if not (self.folder / name).is_symlink()]

    def look(self, name: str) -> Files:
        """Return the files of an entry as they are now.

        Raises:
            NotWhole: It is not whole; the message names it.
            OSError: It was removed, or cannot be read now.
        """
        files, path = self.files(name), self.folder / name
        mark = files.get(f"{name}/{self.marker}") if self.marker else max(files.values(), default=None)
        is_whole = mark and mark[0] >= max(files.values())[0]
        if self.kind in ("rename", "closed"):
            is_whole = any(size for _, _, size in files.values())
        is_cut = self.kind == "header" and not _is_whole_zip(path)
        if not is_whole or is_cut or (self.kind == "closed" and self.is_complete(files) is False):
            raise NotWhole(f"{name} is not whole by --whole")
        return files

    def is_complete(self, files: Files) -> bool | None:
        """Return whether files are complete, by their content; None if no reader is known for one."""
        found = [_is_complete(self.folder / path) for path in files]
        return False if False in found else None if None in found else True

    def files(self, name: str) -> Files:
        """Return the files of any name in the folder, whole or not.

        Raises:
            NotWhole: It contains something else; the message names it.
            OSError: It was removed, or cannot be read now.
        """
        path = self.folder / name
        files: Files = {}
        for each in (path, *path.rglob("*")):
            found = each.lstat()
            if stat.S_ISREG(found.st_mode):
                relative = each.relative_to(self.folder).as_posix()
                files[relative] = found.st_mtime_ns, found.st_ino, found.st_size
            elif not stat.S_ISDIR(found.st_mode):
                raise NotWhole(f"{each} is neither a file nor a folder, so {name} is not whole")
        return files


def _is_complete(path: Path) -> bool | None:
    with path.open("rb") as file:
        head = file.read(8)
        if head.startswith(b"PK"):
            return _is_whole_zip(path)
        is_whole = None
        try:
            if path.suffix == ".json":
                json.loads(path.read_bytes())
                is_whole = True
            if path.suffix == ".safetensors":
                size = struct.unpack("<Q", head)[0]
                ends = [each["data_offsets"][1] for name, each in json.loads(file.read(size)).items() if name[0] != "_"]
                is_whole = bool(path.stat().st_size == 8 + size + max(ends, default=0))
        except (ValueError, struct.error, LookupError, TypeError, MemoryError, OverflowError):
            is_whole = False
    return is_whole


def _is_whole_zip(path: Path) -> bool:
    # Cut off in a zip file within it, it would end with a directory of files that begin later.
    with contextlib.suppress(zipfile.BadZipFile, struct.error, RuntimeError, ValueError):
        return min(each.header_offset for each in zipfile.ZipFile(path).infolist()) == 0
    return False
