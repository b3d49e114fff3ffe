"""Changes of a model in the local registry, each of them whole or not at all, whenever its process is killed."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput import atomic_write
from localvertex.store import executor_files, registry_lock
from localvertex.store.models import change, deployed, evaluations
from localvertex.store.models.change import Change
from localvertex.store.models.reading import (
    ALIASES,
    DEFAULT,
    FILES,
    MODEL,
    NEWEST,
    SHARED,
    SOURCE,
    UPLOADED_BY,
    VERSION_LABELS,
    ModelRecords,
    check_alias,
    merge_aliases,
    object_in,
)

UPDATED = "update_time"

_FILES = (ALIASES, SHARED, change.FILE)


class ModelVersions(ModelRecords):
    """A model's folder in the registry.

    Args:
        folder: `<work-dir>/models/<model id>`.
        check_stopped: Called while a change waits for another process; what it raises ends the wait.
    """

    def __init__(self, folder: Path, check_stopped: Callable[[], None] = lambda: None) -> None:
        super().__init__(folder)
        self._check_stopped = check_stopped

    @classmethod
    def of(cls, work_dir: Path, model_id: str, check_stopped: Callable[[], None] = lambda: None) -> "ModelVersions":
        """Return the versions of a model of the work folder; it has none if it does not exist."""
        return cls(work_dir / "models" / model_id, check_stopped)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the registry's lock, after completing the change of a process that was killed."""
        with registry_lock.locked(self.folder.parent.parent, self._check_stopped):
            for name in _FILES:
                atomic_write.remove_left(self.folder / name)
            self._complete()
            yield

    def add(self, staged: Path, content: JsonObject, aliases: Sequence[str]) -> str:
        """Make a folder the next version, which takes the aliases, and return its number.

        Raises:
            ValueError: The model's aliases are damaged; no version was added.
        """
        with self.changing():
            number = self.next_number
            _write(staged / MODEL, {**content, "version": int(number), "create_time": _now()})
            if aliases:
                # A damaged file is found before there is a version.
                merge_aliases(self.assigned, number, aliases)
                Change(added=number, aliases=aliases).write(self.folder)
            try:
                os.rename(staged, self.folder / number)
            except OSError:
                change.end(self.folder)
                raise
            # The version exists. On a full disk, the next change completes what is left.
            with suppress(OSError):
                self._complete()
        return number

    def find_upload(self, step: str) -> str:
        """Return the newest version that a step uploaded before its run was killed, empty without one."""
        for number in reversed(self.numbers):
            with suppress(OSError, ValueError):
                if object_in(self.folder / number / MODEL).get(UPLOADED_BY) == step:
                    return number
        return ""

    def merge(self, name: str, aliases: Sequence[str]) -> None:
        """Move aliases to the version with a number or alias; remove those with a leading '-' from it.

        Raises:
            LookupError: The model has no such version.
            ValueError: An alias does not match the API's rule, or the default would be removed.
        """
        for alias in aliases:
            check_alias(alias)
        if f"-{DEFAULT}" in aliases:
            raise ValueError(f"the alias {DEFAULT!r} cannot be removed, only moved to another version")
        with self.changing():
            _write(self.folder / ALIASES, merge_aliases(self.assigned, self.number(name), aliases))

    def change(self, number: str, fields: JsonObject) -> None:
        """Replace fields of a version; None removes a field. Labels apply to this version only."""
        if "labels" in fields:
            fields = {**fields, VERSION_LABELS: fields["labels"] or {}}
            del fields["labels"]
        with self.changing():
            path = self.folder / number / MODEL
            _write(path, _without_none(object_in(path) | fields | {UPDATED: _now()}))

    def change_shared(self, fields: JsonObject) -> None:
        """Replace fields of the model in all its versions; None removes a field."""
        with self.changing():
            content = self.shared | fields | {NEWEST: int(self.next_number) - 1}
            _write(self.folder / SHARED, _without_none(content))

    def evaluate(self, number: str, evaluation: JsonObject) -> str:
        """Store an evaluation of a version, and return its id."""
        with self.changing():
            return evaluations.add(self.folder / self.number(number), evaluation)

    def remove(self, number: str) -> None:
        """Delete a version and its aliases; files that the registry did not make stay.

        Raises:
            ValueError: The version is deployed; or its entry is damaged or a link, so that the files of the registry
                are unknown.
        """
        with self.changing():
            self._remove([number])

    def delete(self) -> list[str]:
        """Delete all versions, and return the names of the entries that stay, because the registry did not make them.

        Raises:
            ValueError: See `remove`; no version was deleted.
        """
        with self.changing():
            if not self.numbers:
                return []
            self._remove(self.numbers)
            left = sorted(each.name for each in self.folder.iterdir())
            if not left:
                self.folder.rmdir()
        return left

    def _remove(self, numbers: list[str]) -> None:
        removed = {each: SOURCE in self._entry(each) for each in numbers}
        for each in numbers:
            if names := deployed.endpoints_of(self.folder.parent.parent, self.folder.name, each):
                raise ValueError(f"version {each} is deployed to {', '.join(names)}; undeploy it first")
        # The fields of the model and the last number outlive the versions that they came with.
        self.change_shared({})
        Change(removed=removed).write(self.folder)
        self._complete()

    def _entry(self, number: str) -> JsonObject:
        """Return the content of a version's model.json.

        Raises:
            ValueError: It is damaged, or reached through a link.
        """
        folder = self.folder / number
        if self.folder.is_symlink() or folder.is_symlink():
            raise ValueError(
                f"{folder} is reached through a link, which the registry does not make; remove it yourself"
            )
        return object_in(folder / MODEL)

    def _complete(self) -> None:
        """Complete the change in progress, in an order in which this can be repeated."""
        found = change.read(self.folder)
        if found == Change():
            # One that was edited by hand has no meaning.
            return change.end(self.folder)
        # Nothing in a damaged file can be kept.
        with suppress(ValueError):
            _write(self.folder / ALIASES, self.assigned)
        for number, is_copied in found.removed.items():
            _erase(self.folder / number, is_copied=is_copied)
        if not self.numbers:
            for name in (ALIASES, SHARED):
                (self.folder / name).unlink(missing_ok=True)
        change.end(self.folder)


def _erase(version: Path, *, is_copied: bool) -> None:
    """Remove the registry's files of a version, its entry last."""
    if is_copied:
        executor_files.remove(version / FILES)
    evaluations.remove(version)
    atomic_write.remove_left(version / MODEL)
    (version / MODEL).unlink(missing_ok=True)
    with suppress(OSError):
        version.rmdir()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _without_none(content: JsonObject) -> JsonObject:
    return {name: value for name, value in content.items() if value is not None}


def _write(path: Path, content: JsonObject) -> None:
    atomic_write.write_text(path, json.dumps(content, indent=1))
