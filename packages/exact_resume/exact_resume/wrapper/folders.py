"""The command's own folder, which one run claims, and what is restored into it.

`.exact_resume/` in it is the wrapper's: a lock, the run that writes there with its last committed checkpoint, what is
being restored, and the entries of this run that a start has set aside. No other file is replaced or removed.
"""

import contextlib
import dataclasses
import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from exact_resume.checkpoints import checkpoints, manifest, seal
from exact_resume.checkpoints.manifest import TornCheckpoint
from exact_resume.errors import InputError, RunError
from exact_resume.files import downloads, storage
from exact_resume.text import quote
from exact_resume.wrapper.whole import Entry, NotWhole, Rule

OWN_FOLDER = ".exact_resume"
FILES = "files"
"""Folder in a committed checkpoint with the command's files."""
_LOCK_SECONDS = 30.0
"""Until a killed wrapper's guard has ended the former command."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Restored:
    """Where the command starts."""

    number: int = 0
    """Of the committed checkpoint that is in its folder; 0: none."""
    progress: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Of that checkpoint: `step` and the other figures of the command's log."""
    known: Mapping[str, tuple[int, ...]] = dataclasses.field(default_factory=dict)
    """Name -> version of the entries that need not be committed."""
    damaged: tuple[int, ...] = ()
    """Numbers of newer checkpoints that were passed over."""
    is_copied: bool = False
    """Whether it was copied into the folder; False: the folder had it."""


class CommandFolder:
    """The folder in which the command writes its checkpoints."""

    def __init__(self, path: Path, rule: Rule, run_id: str) -> None:
        """Claim the folder for a run, and lock it until this process and its guard have ended.

        Raises:
            InputError: It contains checkpoints that another run wrote.
            RunError: Another process uses it.
            OSError: It cannot be written.
        """
        self.path, self.rule = path, rule
        self._own = path / OWN_FOLDER
        self._own.mkdir(parents=True, exist_ok=True)
        self.lock = os.open(self._own / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        self._wait_for_lock()
        found = storage.read_json(self._own / "run.json")
        self._record = seal.without(found) if isinstance(found, dict) and seal.is_intact(found) else {}
        if self._record.get("run_id") != run_id:
            if foreign := rule.names(path):
                raise InputError(
                    f"{str(path)!r} contains {quote(foreign[0])}, which this run did not write; move it away, or give"
                    " an empty folder with --watch"
                )
            self._record = {"run_id": run_id}
            self.note(0)

    def _wait_for_lock(self) -> None:
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            with contextlib.suppress(BlockingIOError):
                return fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if time.monotonic() > deadline:
                raise RunError(f"another process wraps a command that writes into {str(self.path)!r}; wait for its end")
            time.sleep(0.1)

    def note(self, number: int) -> None:
        """Remember which checkpoint was committed or restored last: the folder has its content, or a newer one."""
        self._record["number"] = number
        storage.write_json(self._own / "run.json", seal.add_seal(self._record))

    def restore(self, directory: str, report: Callable[[str], None]) -> Restored:
        """Put the newest committed checkpoint into the folder, unless it has that one or a newer whole one.

        Entries of this run that are not whole, and those that another machine has continued, are set aside.

        Args:
            directory: Checkpoint folder, local or gs://.
            report: Receives a line for each entry that is set aside and for each damaged checkpoint.

        Raises:
            InputError: A file that is not a checkpoint of this run is in the way.
            OSError: A checkpoint cannot be read now; it may be intact, so no older one may take its place.
        """
        whole = self._whole(report)
        last: int = self._record["number"]
        damaged: list[int] = []
        for number in checkpoints.steps(directory):
            if whole and number <= last:
                break
            try:
                content = manifest.read(directory, number)
                staged = self._stage(directory, number, content)
            except TornCheckpoint as error:
                damaged.append(number)
                report(f"{manifest.name(number)} is damaged and was skipped: {error}")
                continue
            target = self.path / staged.name
            if os.path.lexists(target) and staged.name not in whole:
                raise InputError(
                    f"{str(target)!r} is in the way of a checkpoint, and this run did not write it; move it"
                )
            try:
                entry = self.rule.look(staged.parent, staged.name)
            except NotWhole as error:
                raise InputError(f"{staged.name} is not whole by this --whole: {error}; give the former rule") from None
            for name in whole:
                self._set_aside(name, f"another machine has committed {manifest.name(number)} since", report)
            os.rename(staged, target)
            self.note(number)
            return Restored(
                number=number,
                progress=content.get("progress", {}),
                known={entry.name: entry.version},
                damaged=tuple(damaged),
                is_copied=True,
            )
        known = {name: entry.version for name, entry in whole.items()}
        if whole:
            # It may not be committed: the wrapper may have been killed before that, or the copy is damaged.
            del known[max(whole.values(), key=lambda entry: entry.changed_ns).name]
        return Restored(known=known, damaged=tuple(damaged), number=last if whole else 0)

    def _whole(self, report: Callable[[str], None]) -> dict[str, Entry]:
        """Return the whole entries by name, after setting the others aside."""
        found = {}
        for name in self.rule.names(self.path):
            try:
                found[name] = self.rule.look(self.path, name)
            except NotWhole as error:
                self._set_aside(name, str(error), report)
        return found

    def _set_aside(self, name: str, reason: str, report: Callable[[str], None]) -> None:
        aside = self._own / "aside" / name
        aside.parent.mkdir(exist_ok=True)
        # One of the same name was set aside by an earlier start.
        aside.unlink(missing_ok=True) if aside.is_symlink() or aside.is_file() else storage.remove_tree(aside)
        os.rename(self.path / name, aside)
        report(f"{name} was moved to {aside}: {reason}")

    def _stage(self, directory: str, number: int, content: Mapping[str, Any]) -> Path:
        """Copy a committed checkpoint beside the entries and verify every byte of it; return the path of the copy."""
        staging = self._own / "restoring"
        storage.remove_tree(staging)
        files = content.get("files")
        name = content.get("entry")
        if not isinstance(files, dict) or not isinstance(name, str):
            raise TornCheckpoint("it is not a checkpoint of a wrapped command")
        targets = []
        for path, expected in files.items():
            parts = PurePosixPath(path).parts
            if parts[:2] != (FILES, name) or ".." in parts or name in (".", OWN_FOLDER):
                raise TornCheckpoint(f"the manifest lists {quote(path)}, which is not below {FILES}/{name}")
            target = staging.joinpath(*parts[1:])
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                with target.open("w+b") as file:
                    downloads.download(storage.join(directory, manifest.name(number), path), file)
                    file.flush()
                    os.fsync(file.fileno())
                    file.seek(0)
                    found = describe(file)
            except storage.MISSING as error:
                raise TornCheckpoint(f"{path} is missing") from error
            if found != expected:
                raise TornCheckpoint(f"{path} does not match the manifest's size and checksum")
            targets.append(target)
        # A marker is the newest, in whichever order the files have come.
        now = time.time_ns()
        for target in targets:
            os.utime(target, ns=(now, now))
        return staging / name


def describe(file: BinaryIO, copy: BinaryIO | None = None) -> dict[str, int | str]:
    """Return size and SHA-256 of an open file, which is copied at the same time if `copy` is given."""
    digest, num_bytes = hashlib.sha256(), 0
    while data := file.read(2**20):
        digest.update(data)
        num_bytes += len(data)
        if copy:
            copy.write(data)
    return {"bytes": num_bytes, "sha256": digest.hexdigest()}
