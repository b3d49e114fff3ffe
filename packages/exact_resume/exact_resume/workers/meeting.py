"""Where the workers of a run meet before they train, and the comparison of what they compute."""

import contextlib
import hashlib
import json
import secrets
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from exact_resume.errors import InputError
from exact_resume.files import storage, versioned
from exact_resume.text import some
from exact_resume.workers.deadline import POLL_SECONDS, Deadline
from exact_resume.workers.place import Place

_MAX_NAMED = 3


class InFolder:
    """A file in the checkpoint folder, which all workers share. It has the chief's address and a random token."""

    def __init__(self, place: Place, directory: str, job: str) -> None:
        """Name the file.

        Args:
            place: Place of this worker.
            directory: Checkpoint folder, the same for all.
            job: The service's id of the job, so that two jobs do not meet each other; may be empty.
        """
        digest = hashlib.sha256(job.encode()).hexdigest()[:8]
        self._place, self._path = place, storage.join(directory, f"rendezvous-{digest}.json")

    def describe(self, rank: int) -> str:
        """Return the name of a worker that is missing."""
        expected = f", which writes {self._path!r} for all; expected a folder that they share"
        return f"worker {rank}{'' if rank else expected}"

    @contextlib.contextmanager
    def listening(self, deadline: Deadline) -> Iterator[tuple[socket.socket, str]]:
        """Listen as the chief, and yield the socket and the token that both ends have to know."""
        del deadline
        token = secrets.token_hex(32)
        # A port of its own, because those of TF_CONFIG and MASTER_PORT belong to the frameworks.
        with _listen(self._place, 0) as listener:
            address = {"host": self._place.host, "port": listener.getsockname()[1], "token": token}
            storage.write_json(self._path, address)
            written = versioned.read(self._path)
            try:
                yield listener, token
            finally:
                # Unless a later start has replaced it.
                versioned.remove(self._path, written)

    def find(self) -> tuple[str, int, str] | None:
        """Return the chief's host, port and token; None if it has not come yet.

        Raises:
            LookupError: The file has another content; or TypeError.
        """
        found = storage.read_json(self._path)
        return (found["host"], found["port"], found["token"]) if found else None


class AtAddress:
    """The chief's own address in TF_CONFIG, which the framework takes over afterwards. Nothing is written."""

    def __init__(self, place: Place, tasks: Mapping[str, str]) -> None:
        """Take the address of the first task.

        Args:
            place: Place of this worker.
            tasks: Name -> host:port, in the order of their ranks.
        """
        self._place, self._names = place, [f"{task} ({address})" for task, address in tasks.items()]
        self._port = int(next(iter(tasks.values())).rpartition(":")[2])

    def describe(self, rank: int) -> str:
        """Return the name of a worker that is missing."""
        return self._names[rank]

    @contextlib.contextmanager
    def listening(self, deadline: Deadline) -> Iterator[tuple[socket.socket, str]]:
        """Listen as the chief, and yield the socket and an empty token."""
        while True:
            try:
                listener = _listen(self._place, self._port)
                break
            except OSError as error:
                # A predecessor on this machine may still be leaving.
                deadline.check([f"its own address, {self._names[0]}: {error.strerror}"])
                time.sleep(POLL_SECONDS)
        with listener:
            yield listener, ""

    def find(self) -> tuple[str, int, str] | None:
        """Return the chief's host, port and token."""
        return self._place.host, self._port, ""


Rendezvous = InFolder | AtAddress


def refuse_difference(
    fields: Sequence[Mapping[str, Any]],
    way_on: str = "start all with the same flags, data and code",
    *,
    names: Sequence[str] = (),
) -> None:
    """Refuse fields that are not equal on all workers.

    Args:
        fields: JSON values by name, of each worker in the order of their ranks.
        way_on: Advice at the end of the message.
        names: Names of the workers; empty: their ranks.

    Raises:
        InputError: A field differs.
    """
    found = []
    for name in sorted({name for each in fields for name in each}):
        workers_with: dict[str, list[str]] = {}
        for rank, each in enumerate(fields):
            worker = names[rank] if names else f"worker {rank}"
            workers_with.setdefault(json.dumps(each.get(name)), []).append(worker)
        if len(workers_with) > 1:
            found.append(
                f"{name} is " + " and ".join(f"{text} on {some(on, _MAX_NAMED)}" for text, on in workers_with.items())
            )
    if found:
        raise InputError(f"the workers differ: {'; '.join(found[:_MAX_NAMED])}; {way_on}")


def _listen(place: Place, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    return socket.create_server((place.host if place.is_local else "", port), family=family)
