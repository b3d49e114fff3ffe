"""Watches the writes in a checkpoint folder, and makes the files that a kill during a write would leave.

The kernel reports each change (inotify). `half_written` makes the files that a kill leaves: those before the save, and
half of the first file of the save under the name that it was written with, a temporary or its final one.
"""

import os
import re
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from localvertex._base.linux import Inotify

_MASK = Inotify.MODIFY | Inotify.CLOSE_WRITE | Inotify.MOVED_FROM | Inotify.MOVED_TO | Inotify.CREATE
_MAX_BYTES = 512 << 20
LOGS = re.compile(r"(^|/)events(/|$)|tfevents|\.log$")
"""Files that grow and are not checkpoints."""
_TEMPORARY = re.compile(r"(^|[./_-])(tmp|temp|partial|part|incomplete)([./_-]|$|\d)|~$", re.I)

State = dict[str, tuple[bytes, int]]
"""The content and the time of change, in nanoseconds, of each file, by its path in the folder."""


class FolderWatch:
    """Follows a folder; elsewhere than on Linux, it sees nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._paths = folder, dict[int, str]()
        self.written = list[str]()
        """Files in the order in which they were complete, by the name that they were written with."""
        self.renames = list[tuple[str, str]]()
        self.seconds = 0.0
        """When the last change of a file that is not a log was seen."""
        self._kernel = None
        with suppress(OSError):
            self._kernel = Inotify()
            self._add("")

    def close(self) -> None:
        """Stop watching."""
        if self._kernel:
            self._kernel.close()

    def poll(self) -> int:
        """Note the changes since the last call; return the number of written files."""
        num_before, origins = len(self.written), dict[int, str]()
        for number, mask, cookie, name in self._kernel.events() if self._kernel else ():
            path = self._paths.get(number, "") + name
            self.seconds = self.seconds if LOGS.search(path) else time.monotonic()
            origin = origins.get(cookie, path)
            if mask & Inotify.MOVED_FROM:
                origins[cookie] = path
            elif origin != path:
                self.renames.append((origin, path))
            if mask & Inotify.IS_FOLDER and mask & (Inotify.CREATE | Inotify.MOVED_TO):
                # A folder that was renamed before it could be watched has files with its former name.
                self._add(f"{path}/", f"{origin}/")
            elif mask & Inotify.CLOSE_WRITE:  # after writing, a file is complete
                self._note(path)
        return len(self.written) - num_before

    def forget(self) -> None:
        """Forget the changes so far."""
        self.written.clear()
        self.renames.clear()

    def _add(self, path: str, written_as: str = "") -> None:
        """Watch a folder, and those in it; files of a new one may be there before it is watched."""
        number = self._kernel.add(f"{self._folder}/{path}", _MASK) if self._kernel else -1
        is_new = written_as and number not in self._paths
        self._paths[number] = path
        with suppress(OSError):
            for each in os.scandir(self._folder / path):
                if each.is_dir(follow_symlinks=False):
                    self._add(f"{path}{each.name}/", written_as and f"{written_as}{each.name}/")
                elif is_new:
                    self._note(f"{written_as}{each.name}")

    def _note(self, path: str) -> None:
        self.written += [path] * (not LOGS.search(path))

    @property
    def overwrites(self) -> bool:
        """Whether a file was written twice under its final name."""
        temporary = {old for old, _ in self.renames}
        counts = Counter(each for each in self.written if each not in temporary and not _TEMPORARY.search(each))
        return counts.total() > len(counts)

    def half_written(self, before: State, after: State) -> tuple[State, str, bool] | None:
        """Return the state in the middle of the first write, the file, and whether that had its final name."""
        for name in dict.fromkeys(self.written):
            moved = (new + name[len(old) :] for old, new in self.renames if f"{name}/".startswith(f"{old}/"))
            final = next(moved, name)
            content, changed = after.get(final, (b"", 0))
            if len(content) > 1:
                half = content[: len(content) // 2], changed
                return before | {name: half}, name, final == name and not _TEMPORARY.search(name)
        return None


def without_numbers(path: str) -> str:
    """Return a path with # for each number: checkpoints of one series have the same."""
    return re.sub(r"\d+", "#", path)


def read_state(folder: Path) -> State:
    """Return all files of a folder.

    Raises:
        OSError: They cannot be read, or have more than 512 MiB.
    """
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    if sum(path.stat().st_size for path in paths) > _MAX_BYTES:
        raise OSError(0, "more than 512 MiB of checkpoints")
    return {path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}


def write_state(folder: Path, state: State) -> None:
    """Make a folder have these files; logs, which only grow, stay as they are."""
    present = read_state(folder)
    for name in present.keys() | state.keys():
        path = folder / name
        if LOGS.search(name) or present.get(name) == state.get(name):
            continue
        if name not in state:
            path.unlink()
            # A folder without its files would not have been there either.
            with suppress(OSError):
                path.parent.rmdir() if path.parent != folder else None
            continue
        content, changed = state[name]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, ns=(changed, changed))


def flip_bit(state: State, draw: int) -> str:
    """Flip a bit in the middle half of the newest checkpoint file, and return its name; empty without one."""
    names = [each for each in state if state[each][0] and not (LOGS.search(each) or _TEMPORARY.search(each))]
    # Of the files that were saved within a second, the largest has the weights.
    name = max(names, key=lambda each: (state[each][1] // 10**9, len(state[each][0]), each), default="")
    if name:
        content, changed = bytearray(state[name][0]), state[name][1]
        content[len(content) // 4 + draw % (len(content) // 2 + 1)] ^= 1 << draw % 8
        state[name] = bytes(content), changed
    return name
