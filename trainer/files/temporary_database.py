"""A database in an unnamed temporary file, which vanishes with the process."""

import contextlib
import errno
import sqlite3
from collections.abc import Iterator

_SETTINGS = """
PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA temp_store = FILE; PRAGMA cache_size = -2000;
"""


def connect(schema: str) -> sqlite3.Connection:
    """Return a new database with these tables; the caller closes it."""
    database = sqlite3.connect("", isolation_level=None)
    database.executescript(f"{_SETTINGS} {schema} BEGIN;")
    return database


@contextlib.contextmanager
def errors_of(content: str) -> Iterator[None]:
    """Turn errors of a database into an OSError about its file.

    Args:
        content: Content of the database, for the message.

    Raises:
        OSError: The disk is full, or fails.
    """
    try:
        yield
    except sqlite3.Error as error:
        number = errno.ENOSPC if error.sqlite_errorcode == sqlite3.SQLITE_FULL else errno.EIO
        raise OSError(number, f"the temporary file of {content} cannot be written ({error})") from error
