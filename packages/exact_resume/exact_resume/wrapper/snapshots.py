"""The command's checkpoints: restored into its folder before it starts, and committed while it runs.

A committed one has the format of `exact_resume.checkpoints.checkpoints`: `step-<number>`, which counts them, with a
sealed manifest and the command's files below `files/`. In the command's own folder, `.exact_resume/` is the wrapper's:
a lock, the run that writes there, what is being restored, and entries that a start has set aside. No other file is
replaced or removed.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from exact_resume.checkpoints import checkpoints, manifest, seal
from exact_resume.checkpoints.lease import Lease
from exact_resume.checkpoints.manifest import MANIFEST_FILE, TornCheckpoint
from exact_resume.errors import InputError, RunError
from exact_resume.events.observers import Observer
from exact_resume.files import downloads, publication, storage
from exact_resume.text import quote
from exact_resume.wrapper.whole import Files, NotWhole, Rule, changed_ns

_OWN_FOLDER = ".exact_resume"
_FILES = "files"
_COMMITTED = re.compile(rf"{re.escape(MANIFEST_FILE)}|{_FILES}/.*", re.DOTALL)
_LOCK_SECONDS = 30.0
"""Until a killed wrapper's guard has ended the former command."""
_SECONDS_AFTER_FAILURE = 15.0


class Snapshots:
    """The checkpoints of one command."""

    def __init__(
        self,
        directory: str,
        watched: Path,
        rule: Rule,
        *,
        identity: dict[str, Any],
        keep: int,
        lease: Lease,
        log_event: Observer,
    ) -> None:
        """Claim the command's folder for a run, and lock it until this process and its guard have ended.

        Args:
            directory: Checkpoint folder, local or gs://.
            watched: The command's folder.
            rule: Which of its entries are whole checkpoints.
            identity: What decides what the command computes.
            keep: Number of newest checkpoints to keep.
            lease: The right to write into the checkpoint folder.
            log_event: Receives each save and failure.

        Raises:
            InputError: The command's folder contains checkpoints that another run wrote.
            RunError: Another process uses it.
            OSError: It cannot be written.
        """
        self.number = 0
        """Of the newest committed checkpoint; 0: none."""
        self._directory, self._watched, self._rule, self._identity = directory, watched, rule, identity
        self._keep, self._lease, self._log_event = keep, lease, log_event
        self._known: dict[str, Files] = {}
        self._previous: dict[str, Files] = {}
        self._in_place: set[str] = set()
        self._damaged: set[int] = set()
        self._next_look = 0.0
        self._own = watched / _OWN_FOLDER
        self._own.mkdir(parents=True, exist_ok=True)
        self.lock = os.open(self._own / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if time.monotonic() > deadline:
                raise RunError(f"another wrapped command writes into {str(watched)!r}; wait for its end")
            time.sleep(0.1)
        found = storage.read_json(self._own / "run.json")
        is_own = isinstance(found, dict) and seal.is_intact(found) and found.get("run_id") == manifest.run_id(identity)
        if not is_own and (foreign := rule.names(watched)):
            raise InputError(
                f"{str(watched)!r} contains {quote(foreign[0])}, which this run did not write; move it away, or give"
                " an empty folder with --watch"
            )
        if is_own:
            self._known = {name: frozenset(map(tuple, files)) for name, files in found["known"].items()}
        self._note(found["number"] if is_own else 0)

    def _note(self, number: int) -> None:
        """Record the newest committed checkpoint, and which entries the folder has that are not newer."""
        known = {name: sorted(files) for name, files in self._known.items() if name not in self._in_place}
        content = {"run_id": manifest.run_id(self._identity), "number": number, "known": known}
        self.number = number
        storage.write_json(self._own / "run.json", seal.add_seal(content))

    def restore(self) -> Mapping[str, float] | None:
        """Make the newest committed checkpoint the newest of the command's folder.

        What is not committed is set aside, because a kill may have interrupted its writing or its removal. If the
        folder has the newest committed checkpoint, that and older ones stay as they are.

        Returns:
            The figures of the log at that checkpoint, `step` and others; None if there is none.

        Raises:
            InputError: A file that is not a checkpoint of this run is in the way.
            OSError: A checkpoint cannot be read now; it may be intact, so no older one may take its place.
        """
        content, staged, last = dict[str, Any](), None, self.number
        self.number = 0
        for number in checkpoints.steps(self._directory):
            try:
                content = manifest.read(self._directory, number)
                if number != last or not self._is_known(str(content.get("entry"))):
                    staged = self._stage(number, content)
                self.number = number
                break
            except TornCheckpoint as error:
                content = {}
                self._damaged.add(number)
                self._notice(f"{manifest.name(number)} is damaged and was skipped: {error}")
        for name in self._rule.names(self._watched):
            if staged or not content or not self._is_known(name):
                aside = self._own / "aside" / f"{time.time_ns()}-{name}"
                aside.parent.mkdir(exist_ok=True)
                os.rename(self._watched / name, aside)
                self._notice(f"{name} was moved to {aside}: it is not the newest that is committed")
        if staged:
            if os.path.lexists(target := self._watched / staged.name):
                raise InputError(
                    f"{str(target)!r} is in the way of a checkpoint, and not one of this run; move it away"
                )
            os.rename(staged, target)
            try:
                self._known = {staged.name: self._rule.look(self._watched, staged.name)}
            except NotWhole as error:
                raise InputError(f"{staged.name} is not whole by this --whole: {error}; give the former rule") from None
            self._note(self.number)
        return content.get("progress", {}) if content else None

    def _is_known(self, name: str) -> bool:
        with contextlib.suppress(NotWhole, *storage.MISSING):
            return self._rule.look(self._watched, name) == self._known.get(name)
        return False

    def _stage(self, number: int, content: Mapping[str, Any]) -> Path:
        """Copy a committed checkpoint beside the entries and verify every byte of it; return the path of the copy."""
        storage.remove_tree(staging := self._own / "restoring")
        if not isinstance(files := content.get("files"), dict) or not isinstance(name := content.get("entry"), str):
            raise TornCheckpoint("it is not a checkpoint of a wrapped command")
        # A marker is not older than the others, in whichever order they come.
        now = time.time_ns()
        for path, expected in files.items():
            parts = PurePosixPath(path).parts
            if parts[:2] != (_FILES, name) or ".." in parts:
                raise TornCheckpoint(f"the manifest lists {quote(path)}, which is not below {_FILES}/{name}")
            target = staging.joinpath(*parts[1:])
            try:
                if _copy(storage.join(self._directory, manifest.name(number), path), target) != expected:
                    raise TornCheckpoint(f"{path} does not match the manifest's size and checksum")
            except storage.MISSING as error:
                raise TornCheckpoint(f"{path} is missing") from error
            os.utime(target, ns=(now, now))
        return staging / name

    def poll(self, progress: Mapping[str, float]) -> None:
        """Commit what is new while the command runs; a failure is logged, and tried again later.

        Args:
            progress: `step` and other figures of the command's log.
        """
        if time.monotonic() >= self._next_look:
            try:
                self._look(progress, is_last=False, needs_two=True)
            except OSError as error:
                self._notice(f"a checkpoint could not be committed, and the command continues: {error}")
                self._next_look = time.monotonic() + _SECONDS_AFTER_FAILURE

    def finish(self, progress: Mapping[str, float], *, was_killed: bool) -> OSError | None:
        """Commit what the command wrote last, after it has ended; return why that failed.

        On a full disk all older checkpoints are traded for room, never the newest intact one.

        Args:
            progress: `step` and other figures of the command's log.
            was_killed: Whether a signal ended the command, perhaps while it removed a checkpoint file by file.
        """
        needs_two = was_killed and self._rule.kind == "rename"
        try:
            try:
                self._look(progress, is_last=True, needs_two=needs_two)
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                self._notice("the disk is full: all checkpoints but the newest are removed for room")
                self._lease.check()
                self._prune(keep=1)
                self._look(progress, is_last=True, needs_two=needs_two)
        except OSError as error:
            return error
        return None

    def _look(self, progress: Mapping[str, float], *, is_last: bool, needs_two: bool) -> None:
        """Commit the newest entry that is whole and has files that are not known.

        With `needs_two`, an entry has to be the same at two looks, besides being whole by the rule. One that has
        changed while it kept its files is not committed as renamed.
        """
        found: dict[str, Files] = {}
        for name in self._rule.names(self._watched):
            try:
                found[name] = self._rule.look(self._watched, name)
            except NotWhole as error:
                if is_last:
                    self._notice(f"{name} is not committed: {error}")
            except storage.MISSING:
                continue  # The command has removed it; many keep only their newest.
        # A part of the known files remains where a removal is not complete.
        new = {name: files for name, files in found.items() if files - self._known.get(name, frozenset())}
        before, self._previous = self._previous, found
        for name, files in list(new.items()):
            kept = {file[:2] for file in files} & {file[:2] for file in before.get(name, ())}
            if self._rule.kind == "rename" and kept and before[name] != files:
                if name not in self._in_place:
                    self._notice(f"{name} is not committed: it changed after it had its name, so no rename made it")
                self._in_place.add(name)
                self._known[name] = new.pop(name)
            elif needs_two and before.get(name) != files:
                del new[name]
        if new:
            newest = max(new, key=lambda name: changed_ns(new[name]))
            try:
                self._commit(newest, new[newest], progress)
            except NotWhole as error:
                return self._notice(f"{newest} is not committed: {error}")
            self._known = {name: files for name, files in (self._known | new).items() if name in found}
            try:
                self._note(self.number)
                self._prune(self._keep)
            except OSError as error:
                self._notice(f"old checkpoints could not be removed: {error}")

    def _commit(self, name: str, files: Files, progress: Mapping[str, float]) -> None:
        started, fence = time.monotonic(), self._lease.fence
        numbers = [int(each[5:]) for each in storage.names(self._directory) if re.fullmatch(r"step-\d{9}", each)]
        number = 1 + max(numbers, default=0)
        content = {"step": number, "run_id": manifest.run_id(self._identity), "identity": self._identity}
        path = storage.join(self._directory, manifest.name(number))
        with publication.committed_directory(path, last=MANIFEST_FILE, own=_COMMITTED, fence=fence) as copy:
            try:
                paths = sorted(file[0] for file in files)
                described = {
                    f"{_FILES}/{each}": _copy(f"{self._watched}/{each}", copy / _FILES / each) for each in paths
                }
                is_same = self._rule.look(self._watched, name) == files
            except storage.MISSING:
                is_same = False
            if not is_same:
                raise NotWhole("it changed or was removed while it was copied")
            manifest.write(copy, {**content, "entry": name, "progress": dict(progress), "files": described})
        self._log_event(
            "save",
            step=progress.get("step", number),
            num_bytes=sum(file[2] for file in files),
            seconds=0.0,
            write_seconds=time.monotonic() - started,
        )
        self.number = number

    def _prune(self, keep: int) -> None:
        checkpoints.remove(self._directory, self._damaged)
        self._damaged.clear()
        checkpoints.prune(self._directory, keep=keep, best_step=0)

    def _notice(self, message: str) -> None:
        self._log_event("notice", message=message)


def _copy(source: str, target: Path) -> dict[str, int | str]:
    """Copy a file, local or on gs://, onto the disk; return size and SHA-256 of the copy."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("w+b") as file:
        downloads.download(source, file)
        file.flush()
        os.fsync(file.fileno())
        size = file.tell()
        file.seek(0)
        return {"bytes": size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
