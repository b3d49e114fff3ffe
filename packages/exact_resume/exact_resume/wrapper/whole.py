"""Which checkpoints of a command are whole, by a rule that the user states; time alone proves nothing.

| rule | an entry that matches PATTERN is whole |
|---|---|
| `rename:PATTERN` | because the command gives it this name when it is complete |
| `marker:PATTERN/FILE` | if the folder has this file, and none of its files is newer |
| `header:PATTERN` | if it is a zip file (pt, npz, keras) whose directory, at the end, is complete |

Nothing is unpickled. Links and names that begin with a dot do not count.
"""

import contextlib
import dataclasses
import glob
import re
import stat
import struct
import zipfile
from pathlib import Path

from exact_resume.errors import InputError
from exact_resume.text import quote

_FORM = re.compile(r"(rename|header):[^/.][^/]*|marker:[^/.][^/]*/.+")
_Files = dict[str, tuple[int, int, int]]
"""Of an entry, which is a file or a folder: path relative to the command's folder -> time of the last change in
nanoseconds, inode and bytes."""


class NotWhole(InputError):
    """A checkpoint does not count."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rule:
    """When an entry of the command's folder is a whole checkpoint.

    Attributes:
        folder: The command's folder.
        kind: rename, marker or header.
        pattern: For the name of an entry, as in a shell.
        marker: Path of the marker within the entry; empty: there is none.
    """

    folder: Path
    kind: str
    pattern: str
    marker: str

    @classmethod
    def parse(cls, text: str, folder: Path) -> "Rule":
        """Return the rule of a text, such as `marker:checkpoint-*/done`.

        Raises:
            InputError: It has another form.
        """
        if not _FORM.fullmatch(text):
            raise InputError(
                f"--whole={quote(text)} is not a rule; expected rename:PATTERN, marker:PATTERN/FILE or header:PATTERN,"
                " such as 'rename:checkpoint-*'"
            )
        kind, _, rest = text.partition(":")
        pattern, _, marker = rest.partition("/")
        return cls(folder=folder, kind=kind, pattern=pattern, marker=marker)

    @property
    def own(self) -> Path:
        """The wrapper's folder within the command's."""
        return self.folder / ".exact_resume"

    def names(self) -> list[str]:
        """Return the names of all entries that match; links never do."""
        return [name for name in glob.glob(self.pattern, root_dir=self.folder) if not (self.folder / name).is_symlink()]

    def look(self, name: str) -> _Files:
        """Return the files of an entry as they are now.

        Raises:
            NotWhole: It is not whole; the message names it.
            OSError: It was removed, or cannot be read now.
        """
        path = self.folder / name
        files: _Files = {}
        for each in (path, *path.rglob("*")):
            found = each.lstat()
            if stat.S_ISREG(found.st_mode):
                relative = each.relative_to(self.folder).as_posix()
                files[relative] = found.st_mtime_ns, found.st_ino, found.st_size
            elif not stat.S_ISDIR(found.st_mode):
                raise NotWhole(f"{each} is neither a file nor a folder, so {name} is not whole")
        mark = files.get(f"{name}/{self.marker}") if self.marker else max(files.values(), default=None)
        if not mark or mark[0] < max(files.values())[0] or (self.kind == "header" and not _is_whole_zip(path)):
            raise NotWhole(f"{name} is not whole by --whole")
        return files


def _is_whole_zip(path: Path) -> bool:
    # Cut off in a zip file within it, it would end with a directory of files that begin later.
    with contextlib.suppress(zipfile.BadZipFile, struct.error, RuntimeError, ValueError):
        return min(each.header_offset for each in zipfile.ZipFile(path).infolist()) == 0
    return False
