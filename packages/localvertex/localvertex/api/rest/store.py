"""The API's state on disk: `<work-dir>/api/<collection>/<id>.json`, each file replaced as a whole.

A file that is damaged is skipped, reported once and listed as such. A state that must not be lost is kept in memory
while the disk is full, and written as soon as there is room. A collection below a resource is named by its path, for
example `tensorboards/1/experiments`.
"""

import fcntl
import json
import os
import re
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import IO, Any

from localvertex._base.json_object import JsonObject
from localvertex._base.lines import WriteLine
from localvertex._base.userinput import atomic_write
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.shape import check
from localvertex.api.rest.call import Call
from localvertex.api.rest.errors import ApiError, Status, not_found
from localvertex.api.rest.index import MISSING, UNKNOWN, Index, Signature, signature
from localvertex.api.rest.index_file import IndexFile
from localvertex.store import run_folder

_FOLDER = "api"

_RETRY_SECONDS = 0.5
"""Time between two attempts to write what did not fit on the disk."""

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}")
"""Ids become file names, so they contain no dot and no slash."""

UNUSABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, ApiError)
"""Errors that code raises when a record has unexpected content."""

Check = Callable[[JsonObject], object]


@lru_cache(maxsize=100_000)
def _id_of(name: str) -> str:
    """Return the id of a file name; empty if it is not one of a resource."""
    stem, _, ending = name.partition(".")
    return stem if ending == "json" and ID.fullmatch(stem) else ""


class Damaged(Exception):
    """A record that cannot be used; the text is the reason."""

    def api_error(self, name: str) -> ApiError:
        """Build the error for a request that needs the record."""
        return ApiError(Status.FAILED_PRECONDITION, f"{name}: its record is damaged ({self}); delete it")


class Store:
    """Resources as JSON objects. Hold `lock` from a read to the write that depends on it.

    Args:
        work_dir: The folder of the runs.
        log: Called with each problem, once.
    """

    def __init__(self, work_dir: Path, log: WriteLine = lambda _: None) -> None:
        self.folder = work_dir / _FOLDER
        self.lock = threading.RLock()
        self.log = log
        self._checks: dict[str, tuple[Check, ...]] = {}
        self._reported: set[str] = set()
        self._unwritten: dict[Path, str] = {}
        self._later: list[Callable[[], None]] = []
        self._writer: threading.Thread | None = None
        self._closing = threading.Event()
        self.index = Index(IndexFile(folder=self.folder))

    def hold(self) -> IO[str]:
        """Lock the state for this process, until the file is closed, and remove what a killed server left half-written.

        Raises:
            UserError: Another server has locked it, or the folder cannot be used.
        """
        try:
            run_folder.make_work_dir(self.folder.parent)
            self.folder.mkdir(exist_ok=True)
            file = (self.folder / ".lock").open("w")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            atomic_write.remove_all_left(self.folder)
            atomic_write.remove_left(self.folder.parent / run_folder.NEW)
        except BlockingIOError:
            raise UserError(
                f"another server uses {self.folder.parent}; stop it, or choose another --work-dir"
            ) from None
        except OSError as error:
            raise UserError(f"the work folder {self.folder.parent} cannot be used: {error.strerror}") from None
        return file

    def expect(self, collection: str, shape: Any, *checks: Check) -> None:
        """Treat a record as damaged that has another shape, or for which a check raises one of `UNUSABLE`.

        A path counts by its last part.
        """
        self._checks[collection] = partial(check, shape=shape), *checks

    def path(self, collection: str, resource_id: str) -> Path:
        """Return the file of a resource."""
        if not ID.fullmatch(resource_id):
            raise ValueError(f"{resource_id!r} is not an id")
        return self.folder / collection / f"{resource_id}.json"

    def read(self, collection: str, resource_id: str) -> JsonObject | None:
        """Return the resource, None when it does not exist.

        Raises:
            Damaged: Its record cannot be used.
        """
        if not ID.fullmatch(resource_id):
            return None
        path = self.path(collection, resource_id)
        kind = collection.rpartition("/")[2]
        try:
            text = self._unwritten.get(path) or path.read_text()
            content: JsonObject = json.loads(text)
            if not isinstance(content.get("createTime", ""), str):
                raise TypeError(f"createTime {content['createTime']!r}")
            if content["name"].split("/")[-2:] != [kind, resource_id]:
                raise ValueError(f"it belongs to {content['name'][:200]!r}")
            for holds in self._checks.get(kind, ()):
                holds(content)
        except FileNotFoundError:
            return None
        except (OSError, RecursionError, *UNUSABLE) as error:
            reason = f"{type(error).__name__}: {str(error)[:200]}"
            self.report(f"{path} is damaged ({reason}); nothing else is affected, delete {collection}/{resource_id}")
            raise Damaged(reason) from None
        return content

    def find(self, call: Call, collection: str) -> JsonObject:
        """Return the resource of a location that a request names.

        Raises:
            ApiError: It does not exist.
            Damaged: Its record cannot be used.
        """
        name = call.location.child(collection, call.resource_id)
        found = self.read(collection, call.resource_id)
        if found is None or found["name"] != name:
            raise not_found(name)
        return found

    def write(self, collection: str, resource_id: str, content: JsonObject) -> None:
        """Create or replace a resource.

        Raises:
            OSError: It cannot be written.
        """
        path = self.path(collection, resource_id)
        with self.lock:
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic_write.write_text(path, json.dumps(content))
            self._unwritten.pop(path, None)

    def keep(self, collection: str, resource_id: str, content: JsonObject) -> None:
        """Create or replace a resource, in memory until it can be written."""
        with self.lock:
            try:
                self.write(collection, resource_id, content)
            except OSError as error:
                path = self.path(collection, resource_id)
                self._unwritten[path] = json.dumps(content)
                self.log(f"{path} cannot be written: {error.strerror}; it is written as soon as that is possible")
                self._start_writer()

    def later(self, write: Callable[[], None]) -> None:
        """Call `write` again and again until it raises no OSError, and once more when the server ends."""
        with self.lock:
            self._later.append(write)
            self._start_writer()

    def remove(self, collection: str, resource_id: str) -> None:
        """Delete a resource."""
        with self.lock:
            self._unwritten.pop(self.path(collection, resource_id), None)
            self.path(collection, resource_id).unlink(missing_ok=True)

    def ids(self, collection: str) -> list[str]:
        """Return the ids of all resources of a collection, sorted."""
        return sorted(self.names(collection))

    def names(self, collection: str) -> set[str]:
        """Return the ids of all resources of a collection."""
        folder = self.folder / collection
        with self.lock:
            found = {path.stem for path in self._unwritten if path.parent == folder}
        with suppress(FileNotFoundError, NotADirectoryError):
            found |= {stem for each in os.listdir(folder) if (stem := _id_of(each))}
        return found

    def signatures(self, collection: str, ids: Iterable[str]) -> dict[str, Signature]:
        """Return the signatures of the files of a collection by id, those that are not written yet among them."""
        folder = self.folder / collection
        with self.lock:
            unwritten = {path.stem: UNKNOWN for path in self._unwritten if path.parent == folder}
        return {
            each: own
            for each in ids
            if _id_of(name := f"{each}.json") and (own := signature(f"{folder}/{name}")) != MISSING
        } | unwritten

    def all(self, collection: str) -> list[JsonObject]:
        """Return the resources of a collection without the damaged ones."""
        return self.survey(collection)[0]

    def survey(self, collection: str) -> tuple[list[JsonObject], dict[str, str]]:
        """Return the resources of a collection, and the ids of damaged ones with the reason."""
        found, damaged = [], {}
        for each in self.ids(collection):
            try:
                content = self.read(collection, each)
            except Damaged as error:
                damaged[each] = str(error)
            else:
                found += [] if content is None else [content]
        return found, damaged

    def report(self, text: str) -> None:
        """Log a problem once, although it is found at each reading."""
        with self.lock:
            is_new = text not in self._reported
            self._reported.add(text)
        if is_new:
            self.log(text)

    def close(self) -> None:
        """Retry the writes that failed before."""
        self.index.close()
        self._closing.set()
        if self._writer is not None:
            self._writer.join()
        self._write_kept()
        for path in self._unwritten:
            self.log(f"{path} could not be written; its last state is lost")

    def _start_writer(self) -> None:
        if self._writer is None:
            self._writer = threading.Thread(target=self._write_later, name="unwritten state", daemon=True)
            self._writer.start()

    def _write_later(self) -> None:
        while not self._closing.wait(_RETRY_SECONDS):
            with self.lock:
                self._write_kept()
                if not self._unwritten and not self._later:
                    self._writer = None
                    return

    def _write_kept(self) -> None:
        with self.lock:
            for path, text in list(self._unwritten.items()):
                try:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    atomic_write.write_text(path, text)
                except OSError:
                    continue
                del self._unwritten[path]
            for write in list(self._later):
                with suppress(OSError):
                    write()
                    self._later.remove(write)
