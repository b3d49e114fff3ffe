"""Copies of files and folders; the original is never moved or changed."""

import hashlib
import os
import shutil
import stat
import threading
from collections.abc import Callable
from pathlib import Path

from localvertex.errors import TaskFailed
from localvertex.processes.masks.mask import Mask

Hides = Callable[[Path], bool]
"""Whether a path leads to what steps must not read."""

is_secret: Hides = Mask().hides


def copy(source: Path, target: Path, *, link_below: Path | None = None, hides: Hides = is_secret) -> None:
    """Copy a file or a folder to a path that does not exist yet.

    A link that leads out of the folder is followed, one within it stays a link.

    Args:
        source: The file or the folder.
        target: The path of the copy, in an existing folder.
        link_below: Files below this folder are hard-linked, where the file system allows it. No other file is.
        hides: Links are not followed there.

    Raises:
        OSError: Something cannot be read or written, or is neither a file nor a folder; the copy is incomplete.
        ValueError: The target is inside the source.
    """
    origin = source.resolve(strict=True)
    if target.parent.resolve().is_relative_to(origin):
        raise ValueError(f"{source} contains {target.parent}")
    _Copy(origin, target, link_below.resolve() if link_below else None, hides).add(origin, target, (origin,))


class _Copy:
    """One call of `copy`."""

    def __init__(self, origin: Path, target: Path, link_below: Path | None, hides: Hides) -> None:
        self._origin, self._target, self._link_below, self._hides = origin, target, link_below, hides

    def add(self, source: Path, target: Path, parents: tuple[Path, ...]) -> None:
        """Copy a resolved file or folder; `parents` are the folders that contain it, as they were reached."""
        mode = source.stat().st_mode
        if stat.S_ISDIR(mode):
            # With the mode of a new folder: a copy without write permission could not be filled or removed.
            target.mkdir()
            for entry in sorted(source.iterdir()):
                self._add_entry(entry, target / entry.name, parents)
        elif stat.S_ISREG(mode):
            self._add_file(source, target)
        else:
            raise shutil.SpecialFileError(f"{source} is neither a file nor a folder")

    def _add_entry(self, entry: Path, target: Path, parents: tuple[Path, ...]) -> None:
        real = Path(os.path.realpath(entry))
        if entry.is_symlink() and real.is_relative_to(self._origin):
            inside = self._target / real.relative_to(self._origin)
            target.symlink_to(os.path.relpath(inside, target.parent))
        elif entry.is_symlink() and (real in parents or not real.exists()):
            target.symlink_to(entry.readlink())
        elif entry.is_symlink() and self._hides(real):
            raise PermissionError(f"{entry} leads to {real}, which steps must not read")
        else:
            self.add(real, target, (*parents, real))

    def _add_file(self, source: Path, target: Path) -> None:
        if self._link_below and source.is_relative_to(self._link_below):
            try:
                return os.link(source, target)
            except OSError:
                pass  # Another file system, too many links, or the file of another user.
        shutil.copy2(source, target)
        target.chmod(target.stat().st_mode | stat.S_IWUSR)
        return None


class Copies(dict[Path, Path]):
    """Copies by their original, each made when it is first looked up; a copy that exists is kept.

    Args:
        folder: The folder for them.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder, self._lock = folder, threading.Lock()

    def __missing__(self, source: Path) -> Path:
        """Return the copy of a file or a folder, which does not exist if the original does not.

        Raises:
            TaskFailed: It cannot be copied.
        """
        known_by = hashlib.sha256(os.fsencode(source)).hexdigest()[:16]
        target, partial = self._folder / known_by / source.resolve().name, self._folder / known_by / ".partial"
        with self._lock:
            try:
                if source.exists() and not target.exists():
                    shutil.rmtree(target.parent, ignore_errors=True)
                    target.parent.mkdir(parents=True)
                    copy(source, partial)
                    partial.rename(target)
            except (OSError, ValueError) as error:
                raise TaskFailed(f"{source} cannot be copied into the run: {error}") from None
            self[source] = target
        return target
