"""The command's checkpoints: restored into its folder before it starts, and committed while it runs.

A committed one has the format of `exact_resume.checkpoints.checkpoints`: `step-<number>`, which counts them, with a
sealed manifest and the command's files below `files/`. In the command's own folder, `.exact_resume/` is the wrapper's:
its lease, what is being restored, and what starts have set aside. No other file is replaced or removed.
"""

import contextlib
import dataclasses
import hashlib
import os
import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from exact_resume.checkpoints import checkpoints, manifest
from exact_resume.checkpoints.manifest import MANIFEST_FILE, TornCheckpoint
from exact_resume.events.observers import Observer
from exact_resume.files import downloads, linux, publication, storage
from exact_resume.files.publication import Fence
from exact_resume.wrapper.output import Progress
from exact_resume.wrapper.whole import Files, NotWhole, Rule

_FILES = "files"
_FAILURES = "failures.json"
"""How often the command has failed before its first step, and the checkpoint that it had."""
_NUM_FAILURES = 2
"""After this many failures, the command is started once with the previous checkpoint."""
_COMMITTED = re.compile(r"manifest\.json|files/.*", re.DOTALL)
_NUM_KEPT = 2
_LARGEST_SHARE = 100
"""If only the files that belong to a checkpoint change, commits take at most 1/100 of the time."""


@dataclasses.dataclass(kw_only=True)
class Snapshots:
    """The checkpoints of one command.

    Attributes:
        directory: Checkpoint folder, local or gs://.
        rule: Which entries of the command's folder are whole checkpoints.
        run: Its `run_id`, and `identity`: what decides what the command computes.
        fence: Refuses a commit after another process has replaced this one.
        log_event: Receives each save and failure.
        progress: The command's log; it continues that of the restored checkpoint.
        is_first: Whether this machine commits.
        number: Number of the newest committed checkpoint; 0: none.
    """

    directory: str
    rule: Rule
    run: dict[str, Any]
    fence: Fence
    log_event: Observer
    progress: Progress
    is_first: bool
    number: int = 0
    _newest_ns: int = 0
    """Entries that have not changed since then are committed, or older than one that is."""
    _entry: Files = dataclasses.field(default_factory=dict)
    """Files of the newest committed checkpoint, without those that belong to it."""
    _committed: Files = dataclasses.field(default_factory=dict)
    _versions: Files = dataclasses.field(default_factory=dict)
    """The last version of each file that was committed or restored."""
    _seen: dict[str, Files] = dataclasses.field(default_factory=dict)
    """Entries that no process was writing at the last look."""
    _failures: tuple[int, int] = (0, 0)
    """The newest checkpoint, and how often the command has failed with it before its first step."""
    _begin: float | None = None
    """The first logged step of the run's first start; None: not known."""
    _restored_step: float = 0
    """Step of the restored checkpoint, until it is compared with the first step after it."""
    _torn: set[str] = dataclasses.field(default_factory=set)
    """Paths that were reported."""
    _next_time: float = 0.0
    """A change of what belongs to the newest checkpoint alone is not committed before."""

    def restore(self) -> None:
        """Make the newest committed checkpoint the only one in the command's folder.

        The others are set aside: a kill may have interrupted their writing or their removal.

        Raises:
            OSError: A checkpoint cannot be read now; it may be intact, so no older one may take its place.
        """
        if self.is_first:
            storage.remove_partial(self.directory)
        folder = self.rule.folder
        staging = self.rule.own / "restoring"
        aside = Path(tempfile.mkdtemp(prefix="aside-", dir=self.rule.own))
        restored, numbers = list[str](), checkpoints.steps(self.directory)
        newest, found = max(numbers, default=0), storage.read_json(storage.join(self.directory, _FAILURES))
        is_known = isinstance(found, dict) and found.get("step") == newest
        num_failures = found.get("failures", 0) if is_known else 0
        self._failures = newest, num_failures
        if num_failures == _NUM_FAILURES and len(numbers) > 1:
            del numbers[0]
            self.log_event(
                "notice",
                message=f"the command failed {num_failures} times before its first logged step with"
                f" {manifest.name(newest)}, which is kept; this start has the one before",
            )
        for number in numbers:
            try:
                content = self._stage(number, staging)
                restored = storage.names(staging / _FILES)
                self.number = number
                break
            except TornCheckpoint as error:
                self.log_event("notice", message=f"{manifest.name(number)} is damaged and was skipped: {error}")
        for name in {*self.rule.names(), *self.rule.names_also(), *restored}.intersection(storage.names(folder)):
            os.rename(folder / name, aside / name)
            self.log_event("notice", message=f"{name} was moved to {aside}: only the newest that is committed counts")
        for name in restored:
            os.rename(staging / _FILES / name, folder / name)
        if restored:
            self._newest_ns, self.progress.figures = time.time_ns(), content["progress"]
            self._begin, self._restored_step = content.get("first_step"), self.progress.figures.get("step", 0)
            self._note(self.rule.files(content["entry"]), self._files_also())
            self.log_event("restore", step=self.progress.figures.get("step", number))

    def check_progress(self) -> None:
        """Report once that the command begins where the run has begun, whatever was restored."""
        first, restored = self.progress.first_step, self._restored_step
        if first is None:
            return
        self._restored_step = 0
        self._begin = first if self._begin is None else self._begin
        if first <= self._begin < restored:
            self.log_event(
                "notice",
                message=f"a checkpoint of step {restored} was restored, but the command's first step is {first}, as at"
                " its first start: it does not load what is in --watch",
            )

    def note_end(self, code: int) -> None:
        """Count a failure before the first step, or forget the earlier ones.

        Args:
            code: Exit code that says something about the command; 0: it succeeded, or was stopped.
        """
        newest, num_failures = self._failures
        path = storage.join(self.directory, _FAILURES)
        if self.progress.first_step is not None or self.number > newest:
            storage.remove(path) if num_failures else None
        elif code and newest and self.progress.pattern and num_failures <= _NUM_FAILURES:
            storage.write_json(path, {"step": newest, "failures": num_failures + 1})
            if num_failures == _NUM_FAILURES:
                self.log_event(
                    "notice",
                    message="the command failed with the checkpoint before, too, so the failure is"
                    f" its own; the next start has {manifest.name(newest)} again",
                )

    def _stage(self, number: int, staging: Path) -> dict[str, Any]:
        """Copy a committed checkpoint, verify every byte of it, and return its manifest."""
        storage.remove_tree(staging)
        content = manifest.read(self.directory, number)
        try:
            with downloads.local_copy(storage.join(self.directory, manifest.name(number), _FILES)) as files:
                shutil.copytree(files, staging / _FILES)
        except storage.MISSING as error:
            raise TornCheckpoint(f"{_FILES} is missing") from error
        if (found := _describe(staging)) != content["files"]:
            raise TornCheckpoint("its files do not match the sizes and checksums of the manifest")
        # A marker is not older than the others, in whichever order they came.
        now = time.time_ns()
        for path in found:
            os.utime(staging / path, ns=(now, now))
        return content

    def commit(self, *, code: int | None = None) -> None:
        """Commit the newest whole entry, if it is newer than the last one, or what belongs to it has changed.

        Args:
            code: Exit code of the command; None: it runs.

        Raises:
            NotWhole: It changed while it was copied.
            OSError: It cannot be committed.
        """
        newest, newest_ns, figures, started = "", self._newest_ns, self.progress.figures, time.monotonic()
        for name in self.rule.names():
            # The command may have removed it; many keep only their newest.
            with contextlib.suppress(NotWhole, *storage.MISSING):
                found = self.rule.files(name)
                changed_ns = max((each[0] for each in found.values()), default=0)
                # What has a marker, or is a complete zip file, needs no other proof.
                is_new = changed_ns > newest_ns
                if is_new and self.rule.kind == "rename" and self._is_torn(found, code, is_entry=True):
                    continue
                if self.rule.look(name) != found or (
                    is_new and self.rule.kind == "closed" and not self._is_closed(name, found, code)
                ):
                    continue
                if is_new or (found == self._entry and not newest):
                    newest, files, newest_ns = name, found, max(changed_ns, newest_ns)
        if not newest or not self.is_first:
            return
        also = self._files_also()
        is_same_entry = files == self._entry
        if is_same_entry and (also | files == self._committed or (code is None and started < self._next_time)):
            return
        if self._is_torn(also, code):
            return
        number = 1 + max(checkpoints.steps(self.directory), default=0)
        with publication.committed_directory(
            storage.join(self.directory, manifest.name(number)), last=MANIFEST_FILE, own=_COMMITTED, fence=self.fence
        ) as copy:
            for each in also | files:
                target = copy / _FILES / each
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(self.rule.folder / each, target)
            if self.rule.look(newest) != files:
                raise NotWhole(f"{newest} changed while it was copied")
            for path, now in self._files_also().items():
                before = also.get(path, now)
                # A log may have grown meanwhile, and what was renamed is complete.
                if now != before and now[1] == before[1] and now[2] <= before[2]:
                    raise NotWhole(f"{path} changed while it was copied")
            manifest.write(
                copy,
                self.run
                | {"step": number, "entry": newest, "progress": figures, "files": _describe(copy)}
                | {"first_step": self._begin},
            )
        self.number = number
        self._newest_ns = newest_ns
        self._note(files, also)
        self._next_time = time.monotonic() + _LARGEST_SHARE * (time.monotonic() - started)
        self.log_event("save", step=figures.get("step", number), seconds=0.0)
        # The next commit removes what remains.
        with contextlib.suppress(OSError):
            checkpoints.prune(self.directory, keep=_NUM_KEPT, best_step=0)

    def _note(self, files: Files, also: Files) -> None:
        self._entry, self._committed = files, also | files
        self._versions |= self._committed

    def _files_also(self) -> Files:
        """Return the files that belong to each checkpoint, as they are now."""
        files: Files = {}
        for name in self.rule.names_also():
            with contextlib.suppress(*storage.MISSING):
                files |= self.rule.files(name)
        return files

    def _is_closed(self, name: str, files: Files, code: int | None) -> bool:
        """Return whether no process writes an entry: this also held at the last look, after which the command ran."""
        if code is not None:
            # A kill also closes half of a file.
            return not code or self.rule.is_complete(files) is True
        is_written = any(linux.is_written(self.rule.folder / path, os.getpid()) for path in files)
        was_closed = self._seen.pop(name, {}) == files
        self._seen |= {} if is_written else {name: files}
        return was_closed and not is_written

    def _is_torn(self, files: Files, code: int | None, *, is_entry: bool = False) -> bool:
        """Return whether a file is being written in place, or was when the command failed, and report it once.

        It is the same file as at the last commit, not a new one that was renamed, and has become smaller. An entry may
        not have changed at all, and a rename changes the time of the inode alone.
        """
        for path, (_, inode, size) in files.items():
            _, inode_before, size_before = self._versions.get(path, (0, 0, 0))
            status = (self.rule.folder / path).lstat()
            is_same = inode == inode_before and (size < size_before or is_entry)
            is_new = is_entry and not inode_before and code is None and linux.is_used()
            if not (is_same or is_new) or (is_entry and status.st_ctime_ns > status.st_mtime_ns):
                continue
            if linux.is_written(self.rule.folder / path, os.getpid()) if code is None else code:
                if path not in self._torn:
                    self._torn.add(path)
                    self.log_event(
                        "notice",
                        message=f"{path} is written in place: it had {size_before} bytes and has {size}, so it is not"
                        " committed now; write it under another name, and rename it when it is complete",
                    )
                return True
        return False


def _describe(folder: Path) -> dict[str, Any]:
    """Return path, size and SHA-256 of all files below a folder."""
    described = {}
    for path in filter(Path.is_file, folder.rglob("*")):
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            described[path.relative_to(folder).as_posix()] = {"bytes": file.tell(), "sha256": sha256}
    return described
