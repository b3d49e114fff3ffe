"""The lease on a checkpoint directory: only the process that took it last may write there."""

import uuid

from trainer.command_line import TrainingError
from trainer.files import storage

LEASE_FILE = "owner.json"


class Lease:
    """The right to write into a checkpoint directory; a former holder that wakes up after a freeze loses it."""

    def __init__(self, directory: str) -> None:
        """Take the lease from any former holder."""
        self._directory, self._path = directory, storage.join(directory, LEASE_FILE)
        self._token = uuid.uuid4().hex
        storage.write_json(self._path, {"token": self._token})

    def check(self) -> None:
        """Refuse to write if another process has taken the lease.

        Raises:
            TrainingError: Another process has taken it.
        """
        content = storage.read_json(self._path)
        if isinstance(content, dict) and content.get("token") != self._token:
            raise TrainingError(f"another process has taken over the run in {self._directory!r}; stopping this one")
