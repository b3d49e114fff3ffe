"""A local folder with one sub-folder per class, optionally below folders train, validation and test."""

import os
import pathlib
import stat
from collections import Counter

from localvertex_base.userinput.errors import UserError
from trainer.data.sources import layout
from trainer.data.sources.layout import ListedSource, Listing
from trainer.data.sources.remarks import KERNEL, LOOPS, SYSTEM
from trainer.data.sources.source import MAX_FILE_BYTES, Count, Identity, ignore_count

_KERNEL_FOLDERS = ("/proc", "/sys", "/dev")


class FolderSource(ListedSource):
    """Images in a local folder; files of the system are skipped."""

    def __init__(self, directory: str, count: Count = ignore_count) -> None:
        """List the folder.

        Args:
            directory: Its path.
            count: Follows the listing.

        Raises:
            UserError: It does not exist, belongs to the operating system, contains no images, or only one class.
        """
        super().__init__(os.path.abspath(os.path.expanduser(directory)), list_folder(directory, count), read, identity)


def list_folder(directory: str, count: Count = ignore_count) -> Listing:
    """Return the files and folders of a folder.

    Args:
        directory: Its path.
        count: Follows the listing.

    Raises:
        UserError: It does not exist, or belongs to the operating system.
    """
    path = os.path.abspath(os.path.expanduser(directory))
    if not os.path.isdir(path):
        raise UserError(
            f"source {directory!r} not found: {path} is not a folder (current folder: {os.getcwd()});"
            f" give digits, tfds:NAME, or a folder of images; training needs one sub-folder per class"
        )
    if is_of_kernel(os.path.realpath(path)) or os.path.realpath(path) == "/":
        raise UserError(f"source {directory!r} belongs to the operating system; give a folder of your images")
    return _Walk(path, count).listing


class _Walk:
    """Lists a folder depth first. Links are followed, but in a class each real folder is entered once."""

    def __init__(self, directory: str, count: Count) -> None:
        self.listing, self._count = Listing(), count
        self._above = _with_parents(os.path.realpath(directory))
        self._entered: dict[str, set[str]] = {}
        top = self._sort(directory, "")
        self._depth = 2 if layout.has_splits(self.listing.folders) else 1
        pending = top[::-1]
        while pending:
            path, name = pending.pop()
            if self._is_new(os.path.realpath(path), name):
                pending += reversed(self._sort(path, f"{name}/"))

    def _is_new(self, real: str, name: str) -> bool:
        """Return whether a folder is to be entered: links may form a cycle or lead into the operating system."""
        if is_of_kernel(real):
            self.listing.remarks.add(KERNEL, name)
            return False
        class_folder = "/".join(name.split("/")[: self._depth])
        # A folder that contains the class would add the images of other classes to it.
        entered = self._entered.setdefault(class_folder, self._above | _with_parents(os.path.dirname(real)))
        if real in entered:
            self.listing.remarks.add(LOOPS, name)
            return False
        entered.add(real)
        return True

    def _sort(self, path: str, prefix: str) -> list[tuple[str, str]]:
        """Add the files of a folder to the listing, and return path and name of each sub-folder."""
        folders: list[tuple[str, str]] = []
        self._count(len(entries := _entries(path)))
        for entry in entries:
            name = prefix + printable(entry.name)
            if layout.is_system_name(entry.name):
                self.listing.remarks.add(SYSTEM, name)
                continue
            kind = _kind(entry)
            if kind == "folder":
                folders.append((entry.path, name))
            elif kind == "file":
                self.listing.add_file(name, entry.path)
            else:
                self.listing.add_irregular(name, kind)
        names = Counter(name for _, name in folders)
        if same := [name for name, count in names.items() if count > 1]:
            raise UserError(f"two folders in {path} are both {same[0]!r} in UTF-8; rename one of them")
        self.listing.folders.update(names)
        return folders


def _entries(path: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except PermissionError as error:
        raise UserError(f"{path}: {error.strerror}; allow this user to read the folder, or remove it") from None


def _kind(entry: os.DirEntry[str]) -> str:
    """Return `folder`, `file`, or why the entry is neither."""
    try:
        if entry.is_dir():
            return "folder"
        if entry.is_file():
            return "file"
        return "not a regular file" if os.path.exists(entry.path) else "a broken link"
    # Links that lead to themselves, or through folders without permission.
    except OSError as error:
        return error.strerror or "a broken link"


def _with_parents(path: str) -> set[str]:
    return {path, *map(str, pathlib.PurePath(path).parents)}


def is_of_kernel(real_path: str) -> bool:
    """Return whether a path without links leads into a folder of the operating system."""
    if (real_path + "/").startswith("/dev/shm/"):  # noqa: S108 - a RAM disk, where users keep data
        return False
    return real_path.startswith(tuple(f"{folder}/" for folder in _KERNEL_FOLDERS)) or real_path in _KERNEL_FOLDERS


def printable(name: str) -> str:
    """Return a name that UTF-8 can hold, because Linux allows any bytes in file names."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def read(path: str) -> bytes:
    """Return the content of a regular file, without waiting and within its size.

    Raises:
        OSError: It is something else by now, too large, or changes.
    """
    with open(path, "rb", opener=open_at_once) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError("not a regular file")
        if status.st_size > MAX_FILE_BYTES:
            raise OSError(f"{status.st_size:,} bytes are more than {MAX_FILE_BYTES:,}")
        # Files of the kernel have no size and may never end.
        data = file.read(status.st_size + 1)
    if len(data) > status.st_size:
        raise OSError(f"it has more than the {status.st_size:,} bytes that its folder has for it")
    return data


def identity(path: str) -> Identity:
    """Return the identity of a file."""
    status = os.stat(path)
    return {
        # With the inode: renaming a folder changes no times of its files, and an archive may give many the same times.
        "inode": status.st_ino,
        "size": status.st_size,
        "mtime_ns": status.st_mtime_ns,
        "ctime_ns": status.st_ctime_ns,
    }


def open_at_once(path: str, flags: int) -> int:
    """Open a file for `open` without waiting."""
    # Opening a FIFO would wait for its writer.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
