"""Commits the command's checkpoints while it runs: a thread looks at its folder, and takes each whole one over.

A checkpoint is the same folder as those of `exact_resume.checkpoints.checkpoints`, `step-<number>` with a sealed
manifest, and has the command's files below `files/`. The number counts the checkpoints.
"""

import dataclasses
import errno
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from exact_resume.checkpoints import checkpoints, manifest
from exact_resume.checkpoints.lease import Lease, NotHolder
from exact_resume.checkpoints.manifest import MANIFEST_FILE
from exact_resume.events.observers import Observer
from exact_resume.files import publication, storage
from exact_resume.wrapper.folders import FILES, CommandFolder, Restored, describe
from exact_resume.wrapper.whole import Entry, NotWhole

_SECONDS_BETWEEN_LOOKS = 0.2
_SECONDS_AFTER_FAILURE = 15.0
_OWN = re.compile(rf"{re.escape(MANIFEST_FILE)}|{FILES}/.*", re.DOTALL)
_NUMBERED = re.compile(r"step-(\d{9})")
_GONE = (FileNotFoundError, NotADirectoryError)
"""The command has removed the entry; many keep only their newest."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Target:
    """Where checkpoints are committed."""

    directory: str
    """Checkpoint folder, local or gs://."""
    lease: Lease
    identity: dict[str, Any]
    keep: int
    """Number of newest checkpoints to keep."""


class Committer:
    """Commits each checkpoint of the command once it is whole."""

    def __init__(
        self,
        folder: CommandFolder,
        target: Target,
        restored: Restored,
        *,
        progress: Callable[[], Mapping[str, float]],
        log_event: Observer,
        lost: Callable[[NotHolder], object],
    ) -> None:
        """Prepare; `start` begins to look.

        Args:
            folder: The command's folder.
            target: Where checkpoints are committed.
            restored: Where the command starts.
            progress: Returns the last `step` and other figures in the command's log.
            log_event: Receives each save and failure, in any thread.
            lost: Called once another process has taken the lease.
        """
        self.number = restored.number
        """Of the newest committed checkpoint; 0: none."""
        self.error: BaseException | None = None
        """Of the thread, if it is not one of a disk or a bucket."""
        self._folder, self._target, self._progress = folder, target, progress
        self._log_event, self._lost = log_event, lost
        self._known, self._damaged = dict(restored.known), set(restored.damaged)
        self._previous: dict[str, Entry] = {}
        self._steps: dict[str, tuple[tuple[int, ...], Mapping[str, float]]] = {}
        self._in_place: set[tuple[str, tuple[int, ...]]] = set()
        self._noticed = ""
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._look_forever, name="committer", daemon=True)

    def start(self) -> None:
        """Look at the folder from now on."""
        self._thread.start()

    def finish(self) -> OSError | None:
        """Commit what the command wrote last, after it has ended; return why that failed.

        On a full disk the oldest checkpoints are traded for room, never the newest.
        """
        self._closed.set()
        self._thread.join()
        if self.error:
            raise self.error
        while True:
            try:
                self.look(is_last=True)
                return None
            except OSError as error:
                found = checkpoints.steps(self._target.directory)
                if error.errno not in (errno.ENOSPC, errno.EDQUOT) or len(found) < 2:
                    self._notice(f"the last checkpoint could not be committed: {error}")
                    return error
                self._target.lease.check()
                oldest = min(set(found) & self._damaged, default=found[-1])
                checkpoints.remove(self._target.directory, [oldest])
                self._notice(f"the disk is full: {manifest.name(oldest)} was removed for room")

    def _look_forever(self) -> None:
        seconds = _SECONDS_BETWEEN_LOOKS
        while not self._closed.wait(seconds):
            try:
                self.look()
                seconds = _SECONDS_BETWEEN_LOOKS
            except OSError as error:
                self._notice(f"a checkpoint could not be committed, and the command continues: {error}")
                seconds = _SECONDS_AFTER_FAILURE
            except NotHolder as error:
                self._lost(error)
            except BaseException as error:
                self.error = error
                return

    def look(self, *, is_last: bool = False) -> None:
        """Commit the newest entry that is whole and new.

        While the command runs, an entry has to be the same at two looks, besides being whole by the rule: that shows
        those that are written in place, although the rule says that they are renamed.

        Raises:
            OSError: It cannot be committed now.
        """
        found, reasons = self._entries()
        self._known = {name: version for name, version in self._known.items() if name in found or name in reasons}
        new = [entry for entry in found.values() if self._known.get(entry.name) != entry.version]
        for entry in new:
            if self._steps.get(entry.name, ((), {}))[0] != entry.version:
                self._steps[entry.name] = (entry.version, self._progress())
            before = self._previous.get(entry.name)
            if before and before.version == entry.version and before != entry and self._folder.rule.kind == "rename":
                self._in_place.add((entry.name, entry.version))
                self._notice(f"{entry.name} is not committed: it changed after it had its name, so no rename made it")
        settled = [
            entry
            for entry in new
            if (entry.name, entry.version) not in self._in_place
            and (is_last or self._previous.get(entry.name) == entry)
        ]
        self._previous = found
        if is_last:
            for name, reason in reasons.items():
                self._notice(f"{name} is not committed: {reason}")
        if settled:
            try:
                self._commit(max(settled, key=lambda entry: entry.changed_ns))
            except NotWhole as error:
                # The next look decides anew.
                if is_last:
                    self._notice(f"a checkpoint is not committed: {error}")
                return
            self._known |= {entry.name: entry.version for entry in settled}

    def _entries(self) -> tuple[dict[str, Entry], dict[str, str]]:
        """Return the whole entries by name, and why the others are not."""
        found: dict[str, Entry] = {}
        reasons: dict[str, str] = {}
        for name in self._folder.rule.names(self._folder.path):
            try:
                found[name] = self._folder.rule.look(self._folder.path, name)
            except NotWhole as error:
                reasons[name] = str(error)
            except _GONE:
                continue
        return found, reasons

    def _commit(self, entry: Entry) -> None:
        target, started = self._target, time.monotonic()
        target.lease.check()
        numbers = [int(match[1]) for match in map(_NUMBERED.fullmatch, storage.names(target.directory)) if match]
        number = 1 + max(numbers, default=0)
        progress = dict(self._steps[entry.name][1])
        path = storage.join(target.directory, manifest.name(number))
        fence = target.lease.fence
        with publication.committed_directory(path, last=MANIFEST_FILE, own=_OWN, fence=fence) as copy:
            files = {f"{FILES}/{name}": self._copy(name, copy / FILES / name) for name, *_ in entry.files}
            try:
                now = self._folder.rule.look(self._folder.path, entry.name)
            except _GONE as error:
                raise NotWhole(f"{entry.name} was removed while it was copied") from error
            if now != entry:
                raise NotWhole(f"{entry.name} changed while it was copied")
            content = {"step": number, "run_id": manifest.run_id(target.identity), "identity": target.identity}
            manifest.write(copy, {**content, "entry": entry.name, "progress": progress, "files": files})
        self.number = number
        seconds, num_bytes = time.monotonic() - started, sum(file[2] for file in entry.files)
        step = progress.get("step", number)
        self._log_event("save", step=step, seconds=0.0, write_seconds=seconds, num_bytes=num_bytes, entry=entry.name)
        self._prune()

    def _copy(self, name: str, copy: Path) -> dict[str, int | str]:
        copy.parent.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(self._folder.path / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except _GONE as error:
            raise NotWhole(f"{name} was removed while it was copied") from error
        with open(descriptor, "rb") as file, copy.open("xb") as written:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise NotWhole(f"{name} is no longer a file")
            return describe(file, written)

    def _prune(self) -> None:
        try:
            self._folder.note(self.number)
            checkpoints.remove(self._target.directory, self._damaged - {self.number})
            self._damaged.clear()
            checkpoints.prune(self._target.directory, keep=self._target.keep, best_step=0)
        except OSError as error:
            self._notice(f"old checkpoints could not be removed, and the command continues: {error}")

    def _notice(self, message: str) -> None:
        # The same failure may return at each look.
        if message != self._noticed:
            self._log_event("notice", message=message)
        self._noticed = message
