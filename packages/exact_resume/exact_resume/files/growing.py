"""A file that only grows, by writes that may fail and are then repeated."""

import errno
import os
import threading

from exact_resume.files import storage


class GrowingFile:
    """Locally, new content is appended. An object in a bucket cannot grow, so it is replaced as a whole."""

    def __init__(self, path: str) -> None:
        """Continue a local file, or begin an object; nothing is written yet."""
        self._path, self._is_object = path, storage.is_object_store(path)
        self._written = self._pending = b""
        # Reentrant, because a signal handler may log while the main thread does.
        self._lock = threading.RLock()

    @property
    def has_pending(self) -> bool:
        """Whether the next `flush` has something to write."""
        return bool(self._pending)

    @property
    def object_size(self) -> int:
        """Number of bytes of the object; 0 for a local file."""
        return len(self._written)

    def add(self, data: bytes) -> None:
        """Add to what the next `flush` writes."""
        with self._lock:
            self._pending += data

    def flush(self) -> None:
        """Write the new bytes, in one thread at a time; other threads may add meanwhile.

        Raises:
            OSError: Nothing of it is written; the next call tries again.
        """
        if not (new := self._pending):
            return
        if self._is_object:
            storage.write_bytes(self._path, self._written + new)
            self._written += new
        else:
            self._append(new)
        with self._lock:
            self._pending = self._pending[len(new) :]

    def _append(self, data: bytes) -> None:
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        # Not replaced as a whole: programs that watch it keep it open and read on.
        with open(self._path, "ab", buffering=0) as file:
            size = file.tell()
            try:
                if file.write(data) < len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
            except OSError:
                # A part must not be repeated, or continued by what follows.
                file.truncate(size)
                raise
