"""The lease on a checkpoint folder: one job writes there, and its heartbeat shows other jobs that it lives.

The holder is a job of the service; its restarts take the lease at once. Another job watches the heartbeat by its own
clock. If the heartbeat changes, the watching job exits. If it has stopped, the watching job takes the lease.
"""

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from exact_resume.checkpoints import seal
from exact_resume.errors import RunError
from exact_resume.files import bucket_errors, storage, this_process, versioned
from exact_resume.files.bucket_errors import Replaced
from exact_resume.files.publication import Fence
from exact_resume.files.versioned import FileVersion

LEASE_FILE = "owner.json"
HEARTBEAT_SECONDS = 10.0
WATCH_SECONDS = 60.0
"""Six heartbeats, because a slow bucket may delay some."""
_MOUNT_FACTOR = 3
"""A mounted bucket may show the state of a minute ago by default (Cloud Storage FUSE)."""
_POLLS = 60
"""Number of times that the watch reads the heartbeat."""
_RELEASE_SECONDS = 20.0
"""How long an exit waits for a heartbeat that is being written."""


class NotHolder(RunError):
    """Another job holds the lease, so this process must not write."""


class Lease:
    """The right to write into a checkpoint folder; a former holder that wakes up after a freeze loses it."""

    def __init__(
        self,
        directory: str,
        job: str = "",
        *,
        pause: Callable[[float], None] = time.sleep,
        report: Callable[[str], None] = lambda message: None,
    ) -> None:
        """Prepare the lease; `take` takes it.

        Args:
            directory: Checkpoint folder.
            job: The service's id of this job, the same after a restart; empty: use a random id for this process.
            pause: Waits for a number of seconds; may raise an exception to end the watch.
            report: Receives a line before a watch.

        Raises:
            InputError: The folder is on gs://, and the package for it is not installed.
        """
        if storage.is_remote(directory):
            bucket_errors.check_installed()
        self._directory, self._path = directory, storage.join(directory, LEASE_FILE)
        self._job, self._token = job, os.urandom(16).hex()
        self._pause, self._report = pause, report
        self._known, self._content, self._beat = FileVersion(), dict[str, Any](), 0
        self.is_taken = False
        """Whether this process took the lease; it may have lost it since."""
        self._closed, self._lock = threading.Event(), threading.Lock()

    @property
    def fence(self) -> Fence:
        """The fence that refuses a commit after another process has replaced this holder."""
        return Fence(folder=self._directory, confirm=self.check)

    def watch(self) -> None:
        """Wait until the lease is free, without changing anything.

        Raises:
            NotHolder: The heartbeat of another job changes.
        """
        self._known = found = versioned.read(self._path)
        if self._is_free(found):
            return
        is_mounted = storage.is_object_store(self._path) and not storage.is_remote(self._path)
        seconds = WATCH_SECONDS * (_MOUNT_FACTOR if is_mounted else 1)
        holder = _describe(found)
        self._report(f"{holder} holds {self._directory!r}; watching its heartbeat for {seconds:g} s")
        started, waited = time.monotonic(), 0.0
        while waited < seconds:
            self._pause(seconds / _POLLS)
            # Measured before the read: if this process was frozen itself, it must read once more.
            waited = time.monotonic() - started
            if (now := versioned.read(self._path)) == found:
                continue
            if self._is_free(now):
                self._known = now
                return
            raise NotHolder(
                f"{holder} is training in {self._directory!r}: its heartbeat continues; nothing was changed here; wait"
                " until that job has ended, or use another folder"
            )
        self._report(f"the heartbeat of {holder} has stopped; taking over {self._directory!r}")

    def take(self, identity: Mapping[str, Any]) -> None:
        """Take the lease, which contains the run's identity even before the first checkpoint.

        Raises:
            NotHolder: Another job holds it.
        """
        holder = self._job or self._token
        process = this_process.describe()
        self._content = {"holder": holder, "token": self._token, "process": process, "identity": identity}
        while not self.is_taken:
            if versioned.read(self._path) != self._known:
                self.watch()
            with contextlib.suppress(Replaced):
                self._known = versioned.replace(self._path, self._encode(), self._known)
                self.is_taken = True
        # Locally, two processes may have compared the version at the same time.
        self.check()

    def check(self) -> None:
        """Refuse to write if another process has taken the lease.

        Raises:
            NotHolder: Another process has taken it.
        """
        if _parse(now := versioned.read(self._path)).get("token") != self._token:
            raise self._loss_error(now)

    def beat(self) -> None:
        """Renew the lease to show that this process lives.

        Raises:
            NotHolder: Another process has taken it.
            OSError: The lease cannot be read or written now.
        """
        with self._lock:
            self._beat += 1
            try:
                self._known = versioned.renew(self._path, self._encode(), self._known)
            except Replaced:
                raise self._loss_error(versioned.read(self._path)) from None

    def keep(self, lost: Callable[[NotHolder], object]) -> None:
        """Renew the lease in a thread until its release; call `lost` once another process has taken the lease."""

        def beat_forever() -> None:
            while not self._closed.wait(HEARTBEAT_SECONDS):
                try:
                    # While a bucket is unavailable, no other process can take the lease either.
                    with contextlib.suppress(OSError):
                        self.beat()
                except NotHolder as error:
                    if not self._closed.is_set():
                        lost(error)
                    return

        threading.Thread(target=beat_forever, name="heartbeat", daemon=True).start()

    def may_write(self) -> bool:
        """Return whether this process holds the lease; False before it takes it.

        Raises:
            NotHolder: Another process has taken it.
        """
        if self.is_taken:
            self.check()
        return self.is_taken

    def release(self, *, has_checkpoint: bool = False) -> None:
        """Release the lease if this process holds it, so that any job can take the folder.

        Args:
            has_checkpoint: Whether to keep the file with its last holder, which machines of a former job read.
        """
        self._closed.set()
        if not self.is_taken or not self._lock.acquire(timeout=_RELEASE_SECONDS):
            return
        # If the release fails, another job has to watch the heartbeat first.
        with contextlib.suppress(OSError):
            if has_checkpoint:
                self._content["is_released"] = True
                versioned.replace(self._path, self._encode(), self._known)
            else:
                versioned.remove(self._path, self._known)
        self._lock.release()

    def _encode(self) -> bytes:
        return storage.encode_json(seal.add_seal({**self._content, "beat": self._beat}))

    def _is_free(self, found: FileVersion) -> bool:
        """Return whether this job may take the lease at once; a damaged lease may belong to a live holder."""
        content = _parse(found)
        process = content.get("process")
        return (
            found.content is None
            or content.get("is_released") is True
            or (bool(self._job) and content.get("holder") == self._job)
            or (isinstance(process, dict) and this_process.has_ended(process))
        )

    def _loss_error(self, now: FileVersion) -> NotHolder:
        new = "another process" if now.content is None else _describe(now)
        return NotHolder(f"{new} has taken over the run in {self._directory!r}; stopping this one")


class Followed:
    """The lease of this job's chief, as its other machines see it."""

    def __init__(self, directory: str, job: str) -> None:
        """Follow a lease; without a job id, its holder cannot be recognised."""
        self._directory, self._job = directory, job
        self._was_own = not job

    def may_write(self) -> bool:
        """Return whether this job holds the lease; False before its chief has taken it.

        Raises:
            NotHolder: Another job has taken it.
        """
        content = _parse(now := versioned.read(storage.join(self._directory, LEASE_FILE)))
        if not self._job or content.get("holder") == self._job:
            self._was_own = True
        elif self._was_own and content:
            raise NotHolder(f"{_describe(now)} has taken over the run in {self._directory!r}; stopping this one")
        return self._was_own


def identity_of_holder(directory: str) -> dict[str, Any] | None:
    """Return the identity of the run that took the lease last; None without such a run, or if it is not known."""
    found = _parse(versioned.read(storage.join(directory, LEASE_FILE))).get("identity")
    return found if isinstance(found, dict) else None


def _parse(found: FileVersion) -> dict[str, Any]:
    """Return the content of a lease; empty if it is missing or damaged."""
    try:
        content = json.loads(found.content or b"")
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) and seal.is_intact(content) else {}


def _describe(found: FileVersion) -> str:
    content = _parse(found)
    process = content.get("process")
    if not isinstance(process, dict):
        return "another process"
    name = f"process {process.get('pid')} on {process.get('host')}"
    holder = content.get("holder")
    return f"another process ({name})" if holder == content.get("token") else f"job {holder} ({name})"
