"""Who may write into a checkpoint directory: the process that came last."""

from __future__ import annotations

import uuid

from trainer.errors import TrainingError
from trainer.files import storage

OWNER_FILE = "owner.json"


class Owner:
    """Takes a checkpoint directory over; a former owner that wakes up (a frozen machine) notices, and leaves."""

    def __init__(self, directory: str) -> None:
        """Take it over."""
        self._directory, self._path = directory, f"{directory.rstrip('/')}/{OWNER_FILE}"
        self._token = uuid.uuid4().hex
        storage.write_json(self._path, {"token": self._token})

    def check(self) -> None:
        """Refuse to go on where another process has taken over.

        Raises:
            TrainingError: it has.
        """
        content = storage.read_json(self._path)
        if isinstance(content, dict) and content.get("token") != self._token:
            raise TrainingError(f"another process trains the run in {self._directory!r} by now; leaving it to that one")
