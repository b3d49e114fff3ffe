"""The index of records at rest, in a file for the next server; it may be deleted at any time.

A file that cannot be read or written is as good as none: the index is then built from the records.
"""

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = ".index.sqlite"

FORMAT = 2
"""Format of the content; it changes when the same record gets another summary."""

_BUSY_SECONDS = 0.2
"""How long to wait for another server; the lists do not need the file."""


@dataclass(frozen=True, kw_only=True)
class IndexFile:
    """The file of a store.

    Args:
        folder: The folder of the store, whose path is part of summaries. A file of another folder counts for nothing.
    """

    folder: Path

    def read(self, collection: str) -> dict[str, tuple[str, Any]]:
        """Return signature and content by the id of each record."""
        path = self.folder / FILE
        if not path.is_file():
            return {}
        try:
            with closing(self._open(path)) as file:
                rows = file.execute("SELECT id, signature, content FROM summaries WHERE collection = ?", [collection])
                ids, signatures, texts = [*zip(*rows, strict=True)] or ((), (), ())
            # One text, in which the names that many records have are read once.
            contents = json.loads(f"[{','.join(texts)}]")
            return dict(zip(ids, zip(signatures, contents, strict=True), strict=True))
        except (sqlite3.Error, ValueError, TypeError) as error:
            # It is not a database, or no longer this server's. Another server may use it, or the disk is full.
            is_usable = isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode != sqlite3.SQLITE_ERROR
            if not is_usable:
                with suppress(OSError):
                    path.unlink()
            return {}

    def write(self, collection: str, new: Mapping[str, tuple[str, Any]], gone: Iterable[str]) -> None:
        """Replace the summaries of some records, and forget the summaries of others."""
        path = self.folder / FILE
        rows = [(collection, name, text, json.dumps(content)) for name, (text, content) in new.items()]
        with suppress(sqlite3.Error, OSError):
            # Only its owner may read what the records contain.
            os.close(os.open(path, os.O_CREAT | os.O_RDONLY | os.O_NOFOLLOW, 0o600))
            with closing(self._open(path)) as file, file:
                file.executemany(
                    "DELETE FROM summaries WHERE collection = ? AND id = ?", [(collection, each) for each in gone]
                )
                file.executemany("INSERT OR REPLACE INTO summaries VALUES (?, ?, ?, ?)", rows)

    def _open(self, path: Path) -> sqlite3.Connection:
        """Open the database; what another format or another folder has left in it is removed."""
        file = sqlite3.connect(path, timeout=_BUSY_SECONDS)
        try:
            with file:
                file.execute("CREATE TABLE IF NOT EXISTS origin (format INTEGER, folder TEXT)")
                if file.execute("SELECT format, folder FROM origin").fetchall() != [(FORMAT, str(self.folder))]:
                    file.execute("DELETE FROM origin")
                    file.execute("DROP TABLE IF EXISTS summaries")
                    file.execute("INSERT INTO origin VALUES (?, ?)", [FORMAT, str(self.folder)])
                columns = "collection TEXT, id TEXT, signature TEXT, content TEXT, PRIMARY KEY (collection, id)"
                file.execute(f"CREATE TABLE IF NOT EXISTS summaries ({columns}) WITHOUT ROWID")
        except BaseException:
            file.close()
            raise
        return file
