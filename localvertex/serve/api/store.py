"""The API's state on disk: `<work-dir>/api/<collection>/<id>.json`, each file replaced as a whole."""

import fcntl
import json
import re
import threading
from pathlib import Path
from typing import IO, Any

from userinput import files
from userinput.errors import UserError

_FOLDER = "api"

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
"""Ids become file names, so they contain no dot and no slash."""


class Store:
    """Resources as JSON objects. Hold `lock` from a read to the write that depends on it."""

    def __init__(self, work_dir: Path) -> None:
        self.folder = work_dir / _FOLDER
        self.lock = threading.RLock()

    def hold(self) -> IO[str]:
        """Lock the state for this process, until the file is closed.

        Raises:
            UserError: Another server has locked it, or the folder cannot be used.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            file = (self.folder / ".lock").open("w")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"another server uses {self.folder.parent}; stop it, or choose another --work-dir"
            ) from None
        except OSError as error:
            raise UserError(f"the work directory {self.folder.parent} cannot be used: {error.strerror}") from None
        return file

    def path(self, collection: str, resource_id: str) -> Path:
        """Return the file of a resource."""
        if not ID.fullmatch(resource_id):
            raise ValueError(f"{resource_id!r} is not an id")
        return self.folder / collection / f"{resource_id}.json"

    def read(self, collection: str, resource_id: str) -> dict[str, Any] | None:
        """Return the resource, None when it does not exist or cannot be read."""
        if not ID.fullmatch(resource_id):
            return None
        return _read_object(self.path(collection, resource_id))

    def write(self, collection: str, resource_id: str, content: dict[str, Any]) -> None:
        """Create or replace a resource."""
        path = self.path(collection, resource_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        with self.lock:
            files.write_text(path, json.dumps(content))

    def remove(self, collection: str, resource_id: str) -> None:
        """Delete a resource."""
        self.path(collection, resource_id).unlink(missing_ok=True)

    def ids(self, collection: str) -> list[str]:
        """Return the ids of all resources of a collection."""
        return sorted(path.stem for path in (self.folder / collection).glob("*.json"))

    def all(self, collection: str) -> list[dict[str, Any]]:
        """Return all resources of a collection that can be read."""
        found = (self.read(collection, each) for each in self.ids(collection))
        return [each for each in found if each is not None]


def _read_object(path: Path) -> dict[str, Any] | None:
    """Read a resource; return None when the file does not exist or contains something else."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) and isinstance(content.get("name"), str) else None
