"""Files that users name for output: a link is followed, and a pipe, /dev/null or standard output is written to."""

import errno
import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

from localvertex_base.userinput import atomic_write, paths
from localvertex_base.userinput.atomic_write import is_in_system, write_all
from localvertex_base.userinput.errors import UserError

_STREAMS = (1, 2)
"""Standard output and standard error."""
_DEVICES = ("/dev/null", "/dev/full", "/dev/tty")
"""Devices that are made to be written to; opening another one may already do something."""


def write(contents: Mapping[Path, bytes | memoryview]) -> None:
    """Write files, replacing the regular ones as a whole, and make their folders.

    Temporary files of killed processes beside them are removed.

    Raises:
        OSError: A file cannot be written.
    """
    regular: dict[Path, bytes | memoryview] = {}
    for path, data in contents.items():
        if (stream := _stream(path)) is not None:
            sys.stdout.flush()
            _write_into(os.dup(stream), path, data)
        elif _is_special(path):
            # Without waiting: a pipe without a reader would never open. Nothing is created or truncated.
            _write_into(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY), path, data)
        else:
            target = Path(os.path.realpath(path))
            target.parent.mkdir(parents=True, exist_ok=True)
            atomic_write.remove_left(target)
            regular[target] = data
    write_all(regular)


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
    try:
        kind = path.stat().st_mode
    except FileNotFoundError:
        return _reason_against_folder(Path(os.path.realpath(path)).parent)
    except OSError as error:
        return (error.strerror or "unusable").lower()
    if _stream(path) is not None:
        return ""
    if stat.S_ISDIR(kind):
        return "it is a folder"
    if _is_special(path):
        return "" if os.access(path, os.W_OK) else "permission denied"
    if not stat.S_ISREG(kind):
        return "it is a device or a socket"
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


def _stream(path: Path) -> int | None:
    """Return the standard stream that a path such as /dev/stdout means, or None."""
    try:
        return next((each for each in _STREAMS if os.path.samestat(path.stat(), os.fstat(each))), None)
    except OSError:
        return None


def _is_special(path: Path) -> bool:
    """Return whether the path is a pipe, or a device that is made to be written to."""
    try:
        found = path.stat()
    except OSError:
        return False
    devices = {os.stat(device).st_rdev for device in _DEVICES if os.path.exists(device)}
    return stat.S_ISFIFO(found.st_mode) or (stat.S_ISCHR(found.st_mode) and found.st_rdev in devices)


def _write_into(descriptor: int, path: Path, data: bytes | memoryview) -> None:
    try:
        os.set_blocking(descriptor, True)
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
    except OSError as error:
        raise OSError(error.errno or errno.EIO, error.strerror, str(path)) from None
    finally:
        os.close(descriptor)
