"""A local folder with one sub-folder per class, optionally below folders train, validation and test."""

import os
import pathlib
from collections import Counter

from localvertex._base.userinput.errors import UserError
from trainer.data.sources import layout
from trainer.data.sources.layout import Listing
from trainer.data.sources.opening import is_of_kernel
from trainer.data.sources.remarks import KERNEL, LOOPS, SYSTEM
from trainer.data.sources.source import Count, ignore_count


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
        found = "is a file, but not a manifest" if os.path.isfile(path) else f"not found: {path} is not a folder"
        raise UserError(
            f"source {directory!r} {found} (current folder: {os.getcwd()}); give a folder of images, a manifest (.csv,"
            " .jsonl or .json), tfds:NAME, or digits; training needs one sub-folder per class"
        )
    if is_of_kernel(os.path.realpath(path)) or os.path.realpath(path) == "/":
        raise UserError(f"source {directory!r} belongs to the operating system; give a folder of your images")
    return _Walk(path, count).listing


class _Walk:
    """Lists a folder depth first. Links are followed, but in a class each real folder is entered once."""

    def __init__(self, directory: str, count: Count) -> None:
        self.listing, self._count = Listing(directory), count
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


def printable(name: str) -> str:
    """Return a name that UTF-8 can hold, because Linux allows any bytes in file names."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
