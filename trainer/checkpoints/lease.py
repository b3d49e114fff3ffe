"""The lease on a checkpoint directory: only the process that took it last may write there."""

import contextlib
import uuid
from collections.abc import Mapping
from typing import Any

from trainer.checkpoints import seal
from trainer.command_line import TrainingError
from trainer.files import storage

LEASE_FILE = "owner.json"


class Lease:
    """The right to write into a checkpoint directory; a former holder that wakes up after a freeze loses it."""

    def __init__(self, directory: str, identity: Mapping[str, Any]) -> None:
        """Take the lease from any former holder; the run's identity is in it before the first checkpoint is."""
        self._directory = directory
        self._token = uuid.uuid4().hex
        content = seal.sealed({"token": self._token, "identity": identity})
        storage.write_json(storage.join(directory, LEASE_FILE), content)

    def check(self) -> None:
        """Refuse to write if another process has taken the lease.

        Raises:
            TrainingError: Another process has taken it.
        """
        if _read(self._directory).get("token", self._token) != self._token:
            raise TrainingError(f"another process has taken over the run in {self._directory!r}; stopping this one")

    def release(self) -> None:
        """Give the directory back to any run, because nothing was saved in it."""
        if _read(self._directory).get("token") == self._token:
            with contextlib.suppress(OSError):
                storage.remove(storage.join(self._directory, LEASE_FILE))


def identity_of_holder(directory: str) -> dict[str, Any] | None:
    """Return the identity of the run that took the lease last; None if there is none, or if it is not known."""
    found = _read(directory).get("identity")
    return found if isinstance(found, dict) else None


def _read(directory: str) -> dict[str, Any]:
    content = storage.read_json(storage.join(directory, LEASE_FILE))
    return content if isinstance(content, dict) and seal.is_intact(content) else {}
