"""A folder in place of the work folder, with what a process adds to it; moved to the work folder when it has ended.

The stand-in of a program that was killed is moved when the next process starts.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from localvertex._base.userinput.spelling import on_one_line

RECORD = "run.json"
PRIVATE, MODELS = ".localvertex", "models"
OF_THE_SERVER = (PRIVATE, "api", "endpoints")

_STAND_INS, _LOCK, _CONTENT = "masks", "lock", "content"


@dataclass(frozen=True, kw_only=True)
class StandInFolder:
    """A stand-in for the work folder, until `collect` is called."""

    root: str
    """Real path of the work folder."""
    folder: str
    lock: int
    """Descriptor of a locked file; not of a folder, through which the process could open what is above it."""
    known: set[str] = field(default_factory=set)
    """Names of the work folder that are mounted."""
    linked: dict[str, int] = field(default_factory=dict)
    """Inodes of its files by name: a program can replace a link, but not what is mounted."""

    @classmethod
    def new(cls, root: str) -> "StandInFolder":
        """Make a stand-in, after moving what killed programs left.

        Raises:
            OSError: It cannot be made.
        """
        above = os.path.join(root, PRIVATE, _STAND_INS)
        os.makedirs(above, exist_ok=True)
        for left in os.scandir(above):
            with suppress(OSError):
                # It may have been mounted over a newer file, so that none is replaced.
                cls(root=root, folder=left.path, lock=_locked(os.path.join(left.path, _LOCK))).collect(replaces=False)
        folder = tempfile.mkdtemp(dir=above)
        os.mkdir(os.path.join(folder, _CONTENT))
        # Without a lock it is not left by a killed program.
        unlocked = os.path.join(folder, f"new.{_LOCK}")
        lock = _locked(unlocked, os.O_CREAT)
        os.rename(unlocked, os.path.join(folder, _LOCK))
        return cls(root=root, folder=folder, lock=lock)

    @property
    def content(self) -> str:
        """Return the folder that the process sees."""
        return os.path.join(self.folder, _CONTENT)

    def link(self, name: str) -> bool:
        """Show a file or link of the work folder; return whether the file system allows it."""
        with suppress(OSError):
            source, target = os.path.join(self.root, name), os.path.join(self.content, name)
            os.link(source, target, follow_symlinks=False)
            self.linked[name] = os.lstat(target).st_ino
        return name in self.linked

    def collect(self, *, replaces: bool = True) -> list[str]:
        """Move what the process has added to the work folder; return a line for each entry that is not moved.

        Args:
            replaces: Whether files of the work folder are replaced, as the process would have done.
        """
        with _opened(self.root) as root, _opened(self.content) as content:
            for name, inode in self.linked.items():
                own, there = _inode(name, content), _inode(name, root)
                if own == inode:
                    os.unlink(name, dir_fd=content)
                elif own is None and there == inode:
                    os.unlink(name, dir_fd=root)
            discarded = [name for name in os.listdir(content) if not self._may_move(name)]
            names = [name for name in os.listdir(content) if name not in (*discarded, *self.known)]
            discarded += _moved(content, root, names, replaces=replaces)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self.lock)
        paths = [ascii(os.path.join(self.root, name)) for name in discarded if name not in self.known]
        return [f"{on_one_line(each)} is not of this run: what was written there is discarded" for each in paths]

    def _may_move(self, name: str) -> bool:
        paths = [os.path.join(above, name) for above in (self.content, self.root)]
        is_run = any(os.path.lexists(os.path.join(each, RECORD)) for each in paths)
        return not (is_run or name in (*OF_THE_SERVER, MODELS) or os.path.islink(paths[0]))


def _moved(source: int, target: int, names: list[str], *, replaces: bool) -> Iterator[str]:
    """Move entries of a folder, into folders that exist there; yield the paths of those that cannot be moved.

    Folders are open: another process may replace one by a link meanwhile.
    """
    for name in names:
        with suppress(OSError):
            if replaces or _inode(name, target) is None:
                os.rename(name, name, src_dir_fd=source, dst_dir_fd=target)
                continue
        try:
            with _opened(name, source) as inner, _opened(name, target) as outer:
                for each in _moved(inner, outer, os.listdir(inner), replaces=replaces):
                    yield os.path.join(name, each)
        except OSError:
            yield name


def _locked(path: str, flags: int = 0) -> int:
    """Return the descriptor of a file that no other process has locked.

    Raises:
        OSError: Another process has locked it, or it cannot be opened.
    """
    lock = os.open(path, os.O_RDWR | os.O_NOFOLLOW | flags, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise
    return lock


@contextmanager
def _opened(name: str, folder: int | None = None) -> Iterator[int]:
    descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _inode(name: str, folder: int) -> int | None:
    """Return the inode of an entry; None if there is none."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_ino
    except OSError:
        return None
