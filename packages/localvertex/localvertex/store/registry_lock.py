"""The lock of a work folder's registry: one process at a time changes the records of models and endpoints.

Readers take no lock: each record is replaced as a whole.
"""

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from localvertex.store import record, run_folder

_FILE = "registry.lock"

_POLL_SECONDS = 0.005

_held = threading.local()


@contextmanager
def locked(work_dir: Path, check_stopped: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock, which ends with its process however that ends; the same thread may take it again.

    Args:
        work_dir: The folder of the runs; made when it does not exist.
        check_stopped: Called again and again while another process or thread has the lock; what it raises ends the
            wait.

    Raises:
        OSError: The work folder cannot be used, or its file system has no locks.
    """
    path = work_dir.resolve() / record.PRIVATE / _FILE
    paths: set[Path] = _held.__dict__.setdefault("paths", set())
    if path in paths:
        yield
        return
    with _acquire(path, check_stopped) as file:
        paths.add(path)
        try:
            yield
        finally:
            paths.remove(path)
            # A process that was forked meanwhile also has the file open.
            fcntl.flock(file, fcntl.LOCK_UN)


def _acquire(path: Path, check_stopped: Callable[[], None]) -> IO[str]:
    """Wait for the lock and return its file."""
    run_folder.make_work_dir(path.parent.parent)
    while True:
        path.parent.mkdir(exist_ok=True)
        # Not "w": nothing is removed from a file to which a link leads.
        file = path.open("a")
        try:
            _wait_for(file, check_stopped)
            # The folder contains caches, which users may remove at any time.
            if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        except FileNotFoundError:
            pass
        except BaseException:
            file.close()
            raise
        file.close()


def _wait_for(file: IO[str], check_stopped: Callable[[], None]) -> None:
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            check_stopped()
            time.sleep(_POLL_SECONDS)
        except OSError as error:
            # A file system without locks; the error of the call names no file.
            raise OSError(error.errno, error.strerror, file.name) from None
