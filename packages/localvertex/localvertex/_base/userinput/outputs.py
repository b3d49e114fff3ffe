"""Files that users name for output: a link is followed, and what is not a regular file is refused."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from localvertex._base.userinput import atomic_write, paths
from localvertex._base.userinput.atomic_write import is_in_system, write_all
from localvertex._base.userinput.errors import UserError


def write(contents: Mapping[Path, bytes | memoryview]) -> None:
    """Write files, replacing each as a whole, and make their folders.

    Temporary files of killed processes beside them are removed.

    Raises:
        OSError: A file cannot be written, or is not a regular one.
    """
    targets = {Path(os.path.realpath(path)): data for path, data in contents.items()}
    for target in targets:
        target.parent.mkdir(parents=True, exist_ok=True)
        atomic_write.remove_left(target)
    write_all(targets)


def check_file(name: str, path: str | Path) -> None:
    """Refuse a local file that `write` could not write, before anything expensive.

    Args:
        name: The flag or parameter, which begins the message.
        path: Where the file will be; its folder is made later and need not exist.

    Raises:
        UserError: The path is a folder or a device, or its folder cannot be made or written to.
    """
    if reason := _reason_against(Path(path)):
        raise UserError(f"{name}={paths.display(str(path))} cannot be written ({reason}); give another file")


def check_folder(name: str, path: str | Path) -> None:
    """Refuse a local folder that cannot be made, or in which no files can be made.

    Raises:
        UserError: It is a file, or below one, or the permission is missing.
    """
    if reason := _reason_against_folder(Path(path)):
        raise UserError(f"{name}={paths.display(str(path))} cannot be used ({reason}); give another folder")


def _reason_against(path: Path) -> str:
    """Return why a file cannot be written; empty if it can."""
    if is_in_system(Path(os.path.abspath(path)).parent):
        # /dev/stdout too, which may be a link to a regular file.
        return "it is in a folder of the system"
    try:
        kind = path.stat().st_mode
    except FileNotFoundError:
        kind = stat.S_IFREG
    except OSError as error:
        return (error.strerror or "unusable").lower()
    if stat.S_ISDIR(kind):
        return "it is a folder"
    if not stat.S_ISREG(kind):
        return "it is a device, a pipe or a socket"
    return _reason_against_folder(Path(os.path.realpath(path)).parent)


def _reason_against_folder(folder: Path) -> str:
    """Return why no files can be made in a folder, which need not exist; empty if they can."""
    if is_in_system(folder):
        return "it is in a folder of the system"
    existing = Path(os.path.abspath(folder))
    while not os.path.lexists(existing):
        existing = existing.parent
    if not existing.is_dir():
        return f"{existing} is not a folder"
    return "" if os.access(existing, os.W_OK | os.X_OK) else f"permission denied in {existing}"
