"""The lease on a checkpoint directory: one job writes there, and its heartbeat shows the others that it lives.

The holder is the service's job, whose restarts take the lease at once. Another job watches the heartbeat by its own
clock. If it changes, that job leaves; if it stands still, the holder was killed, and the watcher takes the lease.
"""

import contextlib
import json
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from trainer.checkpoints import seal
from trainer.command_line import TrainingError
from trainer.files import storage, this_process, versioned
from trainer.files.bucket_errors import Replaced
from trainer.files.publication import Fence
from trainer.files.versioned import Version

LEASE_FILE = "owner.json"
HEARTBEAT_SECONDS = 10.0
WATCH_SECONDS = 60.0
"""Six heartbeats, which a slow bucket may delay."""
_MOUNT_FACTOR = 3
"""A mounted bucket may show a file as it was a minute ago, the default of Cloud Storage FUSE."""
_POLLS = 60
"""Looks at the heartbeat during the watch."""
_RELEASE_SECONDS = 20.0
"""How long an exit waits for a heartbeat on its way."""


class NotHolder(TrainingError):
    """Another job holds the lease, so this process must not write."""


class Lease:
    """The right to write into a checkpoint directory; a former holder that wakes up after a freeze loses it."""

    def __init__(
        self,
        directory: str,
        job: str = "",
        *,
        pause: Callable[[float], None] = time.sleep,
        report: Callable[[str], None] = lambda message: None,
    ) -> None:
        """Describe the lease; `take` takes it.

        Args:
            directory: Checkpoint directory.
            job: The service's id of this job, the same after a restart; empty: a random one for this process.
            pause: Waits for some seconds; may raise an exception to end the watch.
            report: Receives a line before a watch.
        """
        self._directory, self._path = directory, storage.join(directory, LEASE_FILE)
        self._job, self._token = job, uuid.uuid4().hex
        self._pause, self._report = pause, report
        self._known, self._content, self._beat = Version(), dict[str, Any](), 0
        self.is_taken = False
        """Whether this process has taken it, and perhaps lost it since."""
        self._closed, self._lock = threading.Event(), threading.Lock()

    @property
    def fence(self) -> Fence:
        """What refuses the commit of a holder that another process has replaced."""
        return Fence(folder=self._directory, confirm=self.check)

    def watch(self) -> None:
        """Return when the lease is free; change nothing.

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
            # Before the look: a watcher that was frozen itself has to look again.
            waited = time.monotonic() - started
            if (now := versioned.read(self._path)) == found:
                continue
            if self._is_free(now):
                self._known = now
                return
            raise NotHolder(
                f"{holder} is training in {self._directory!r}: its heartbeat changes; nothing was changed here; wait"
                " until it has ended, or give another --checkpoint-directory"
            )
        self._report(f"the heartbeat of {holder} stands still; taking over {self._directory!r}")

    def take(self, identity: Mapping[str, Any]) -> None:
        """Take the lease; the run's identity is in it before the first checkpoint is.

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
                self._known = versioned.replace(self._path, self._encoded(), self._known)
                self.is_taken = True
        # Locally, two processes may have compared the version at the same moment.
        self.check()

    def check(self) -> None:
        """Refuse to write if another process has taken the lease.

        Raises:
            NotHolder: Another process has taken it.
        """
        if _parse(now := versioned.read(self._path)).get("token") != self._token:
            raise self._lost(now)

    def beat(self) -> None:
        """Change the lease, which shows that this process lives.

        Raises:
            NotHolder: Another process has taken it.
            OSError: It cannot be read or written now.
        """
        with self._lock:
            self._beat += 1
            try:
                self._known = versioned.renew(self._path, self._encoded(), self._known)
            except Replaced:
                raise self._lost(versioned.read(self._path)) from None

    def keep(self, lost: Callable[[NotHolder], object]) -> None:
        """Beat in a thread until the release; call `lost` as soon as another process has taken the lease."""

        def beat_forever() -> None:
            while not self._closed.wait(HEARTBEAT_SECONDS):
                try:
                    # A bucket that is not available shows no other holder either.
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
        """Give the directory back to any job, if this process holds the lease.

        Args:
            has_checkpoint: Whether the file stays and names its last holder, which the machines of a former job read.
        """
        self._closed.set()
        if not self.is_taken or not self._lock.acquire(timeout=_RELEASE_SECONDS):
            return
        # Otherwise another job watches the heartbeat before it takes the lease.
        with contextlib.suppress(OSError):
            if has_checkpoint:
                self._content["is_released"] = True
                versioned.replace(self._path, self._encoded(), self._known)
            else:
                versioned.remove(self._path, self._known)
        self._lock.release()

    def _encoded(self) -> bytes:
        return storage.encode_json(seal.sealed({**self._content, "beat": self._beat}))

    def _is_free(self, found: Version) -> bool:
        """Return whether this job may take the lease at once; one that is damaged may be of a live holder."""
        content = _parse(found)
        process = content.get("process")
        return (
            found.content is None
            or content.get("is_released") is True
            or (bool(self._job) and content.get("holder") == self._job)
            or (isinstance(process, dict) and this_process.has_ended(process))
        )

    def _lost(self, now: Version) -> NotHolder:
        new = "another process" if now.content is None else _describe(now)
        return NotHolder(f"{new} has taken over the run in {self._directory!r}; stopping this one")


class Followed:
    """The lease of this job's chief, as its other machines see it."""

    def __init__(self, directory: str, job: str) -> None:
        """Follow a lease; without the id of a job nothing is known about its holder."""
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
    """Return the identity of the run that took the lease last; None if there is none, or if it is not known."""
    found = _parse(versioned.read(storage.join(directory, LEASE_FILE))).get("identity")
    return found if isinstance(found, dict) else None


def _parse(found: Version) -> dict[str, Any]:
    """Return the content of a lease; empty if there is none, or if it is damaged."""
    try:
        content = json.loads(found.content or b"")
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) and seal.is_sealed(content) and seal.is_intact(content) else {}


def _describe(found: Version) -> str:
    content = _parse(found)
    process = content.get("process")
    if not isinstance(process, dict):
        return "another process"
    name = f"process {process.get('pid')} on {process.get('host')}"
    holder = content.get("holder")
    return f"another process ({name})" if holder == content.get("token") else f"job {holder} ({name})"
