"""Which folders of records have changed, by anybody: the kernel reports each change before the next list can ask.

Only what has changed is then looked at. The kernel does not report what another machine does on a network file system,
which is therefore not watched, nor what happens through a second name of a file, or a mount. So what has a second name
is looked at each time, and everything once a minute: a name that was made since, or a mount, is found then.
"""

import os
import stat
import threading
from collections.abc import Iterable
from itertools import takewhile

from localvertex._base.linux import Inotify, max_watches, reports_all_changes

NEVER = -1
"""The moment before all others."""

_SHARE = 4
"""One folder in so many that this user may watch: the rest is left to their other programs."""

_MAX_CHANGES = 200_000
"""Paths, of less than 100 bytes each."""

_CONTENT = Inotify.MODIFY | Inotify.ATTRIB | Inotify.CLOSE_WRITE
_ENTRIES = Inotify.MOVED_FROM | Inotify.MOVED_TO | Inotify.CREATE | Inotify.DELETE
_ITSELF = Inotify.DELETE_SELF | Inotify.MOVE_SELF


class Watch:
    """Folders whose changes are noted. Safe for several threads.

    There are two kinds: lists, whose entries are noted one by one, and folders that are noted as a whole.
    """

    def __init__(self) -> None:
        self._lock, self._is_closed = threading.Lock(), False
        self._kernel: Inotify | None = None
        self._moment = self._since = 0
        """The present moment, which each change counts up, and that since which all changes are noted."""
        self._begin()

    def _begin(self) -> None:
        """Forget everything: what was noted before counts no more."""
        if self._kernel:
            self._kernel.close()
        self._kernel = None
        self._moment += 1
        self._since, self._max = self._moment, max_watches() // _SHARE
        self._paths: dict[int, str] = {}
        self._numbers: dict[str, int] = {}
        self._lists: dict[str, tuple[int, int]] = {}
        """Path -> device and inode."""
        self._changes: dict[str, int] = {}
        """Path -> the moment of its last change, in the order of the moments."""

    def changes(self, lists: Iterable[str], since: int) -> tuple[int, list[str] | None]:
        """Return the present moment and what has changed; NEVER if the lists cannot be watched.

        Args:
            lists: Their paths.
            since: An earlier moment.

        Returns:
            The moment, and paths of entries of all lists and of folders; None: everything may have changed.
        """
        with self._lock:
            if not self._note() or any(self._lists.get(each, seen := _identity(each)) != seen for each in lists):
                self._begin()
            if not all(each in self._lists or self._add_list(each) for each in lists):
                return NEVER, None
            if since < self._since:
                return self._moment, None
            return self._moment, [*takewhile(lambda each: self._changes[each] > since, reversed(self._changes))]

    def add(self, folder: str) -> bool:
        """Watch a folder in a list; return whether all its changes will be noted, those of its creation included."""
        with self._lock:
            if folder in self._numbers:
                return True
            number = -1
            if self._kernel and len(self._paths) < self._max:
                number = self._kernel.add(folder, _CONTENT | _ENTRIES | Inotify.ONLY_FOLDER | Inotify.NO_LINK)
            return self._keep(folder, number) if number >= 0 else not _is_folder_or_link(folder)

    def close(self) -> None:
        """Watch nothing any more."""
        with self._lock:
            self._begin()
            self._is_closed = True

    def _add_list(self, path: str) -> bool:
        if self._is_closed or (before := _identity(path)) is None or not reports_all_changes(path):
            return False
        try:
            self._kernel = self._kernel or Inotify()
        except OSError:
            return False
        number = self._kernel.add(path, _CONTENT | _ENTRIES | _ITSELF | Inotify.ONLY_FOLDER)
        if number < 0 or not self._keep(path, number) or _identity(path) != before:
            return False
        self._lists[path] = before
        return True

    def _keep(self, path: str, number: int) -> bool:
        """Keep the number of a path; return whether it has no other, as a folder with two names would."""
        if self._paths.setdefault(number, path) != path:
            return False
        self._numbers[path] = number
        return True

    def _note(self) -> bool:
        """Note what the kernel reports; return False if it is not all."""
        for number, mask, _, name in self._kernel.events() if self._kernel else ():
            path = self._paths.get(number, "")
            if mask & Inotify.OVERFLOW or (path in self._lists and not name):
                return False
            if not path:
                continue
            if mask & Inotify.IGNORED:
                del self._paths[number], self._numbers[path]
            elif path in self._lists:
                path = f"{path}/{name}"
                if mask & _ENTRIES and path in self._numbers and self._kernel:
                    # Another folder may have this name now, while a process still uses the earlier one.
                    self._kernel.remove(number := self._numbers.pop(path))
                    del self._paths[number]
            self._moment += 1
            self._changes.pop(path, None)
            self._changes[path] = self._moment
        return len(self._changes) < _MAX_CHANGES


def _identity(path: str) -> tuple[int, int] | None:
    """Return the device and the inode; None if it cannot be reached."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_folder_or_link(path: str) -> bool:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return stat.S_ISDIR(mode) or stat.S_ISLNK(mode)
