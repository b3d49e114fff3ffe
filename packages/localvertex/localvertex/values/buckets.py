"""Buckets as folders of this machine, `--gcs-root DIR`: gs://bucket/x, which Vertex AI mounts at /gcs/bucket/x.

An artifact keeps its URI, and its path is DIR/bucket/x. A parameter is only text, so a program gets the path itself.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex._base.nested import changed, parts
from localvertex.errors import TaskFailed

_SCHEME, _MOUNT = "gs://", "/gcs/"

_ADDRESS = re.compile(r"(?:--?[\w-]+[= ])?(?:gs://|/gcs/)")
"""Text that is an address, or a command-line option with one, but not a sentence that mentions one."""

_OBJECT = re.compile(r"(?:gs://|(?<![^\s=,;'\"])/gcs/)[^\s,;'\"]*")
_IN_SCRIPT = re.compile(r"(?<![\w./-])/gcs/[a-z0-9][a-z0-9._-]+[^\s,;'\"`|&<>()${}*?\[\]]*")
"""A path in a script of a shell or of Python, up to what a shell would replace."""

_TAKES_SCRIPT = re.compile(r"-\w*c")
"""The option before a script, as in `bash -euc SCRIPT`."""

_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,221}")

PROJECT_NUMBER = "100000000001"
"""The number of every local project; the SDK compares a bucket's with the project's."""

_PROGRAM = "ephemeral_component"
"""Part of the command that runs a Python component; the next word is the component's source."""

_MOUNTED = (
    '[setattr(_m, "_GCS_LOCAL_MOUNT_PREFIX", {prefix!r}) for _n, _m in [*__import__("sys").modules.items()]'
    ' if _n.startswith("kfp.") and _n.endswith(".types.artifact_types")]'
)
"""Python code that moves kfp's mount of buckets, in all its versions, and adds no name to the component's module."""


class OutsideBucket(TaskFailed):
    """An address leads out of its bucket, as gs://bucket/../../etc or by a link; the message is shown to the user."""


def addresses(value: Any) -> Iterator[str]:
    """Yield the texts in a value of any shape that are addresses in Cloud Storage."""
    return (text.strip()[:200] for text in texts_in(value) if _ADDRESS.match(text.strip()))


def texts_in(value: Any) -> Iterator[str]:
    """Return all texts in a value of JSON, without the names of its fields."""
    return (each for each in parts(value) if isinstance(each, str))


def is_mounted(address: str) -> bool:
    """Return whether a path is in a mounted bucket, /gcs/bucket/x."""
    return _MOUNT in address and _SCHEME not in address


@dataclass(frozen=True, kw_only=True)
class Buckets:
    """The local folders of a run's buckets."""

    root: Path | None = None
    """Absolute path of a folder with one folder per bucket; None: gs:// is Cloud Storage itself."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Files and folders of the user by their gs:// address, for reading only: outputs are never written there."""
    copies: Mapping[Path, Path] | None = None
    """The run's own copies of them, for its programs, which may write to what they read; None: programs get none."""
    keeps_addresses: bool = False
    """Whether a program gets gs:// as it is, because it calls Cloud Storage, whose calls also lead to the folders."""

    @classmethod
    def of_record(cls, content: JsonObject) -> "Buckets":
        """Return the buckets of a run by its record, which is empty for a new run."""
        root = content.get("gcs_root")
        return cls(root=Path(root) if root else None)

    def path_of(self, uri: str) -> str:
        """Return the path for a URI, as kfp's `Artifact.path` does; other URIs are returned unchanged.

        Raises:
            OutsideBucket: The URI leads out of its bucket.
        """
        if not uri.startswith((_SCHEME, _MOUNT)):
            return uri
        name = uri.removeprefix(_SCHEME).removeprefix(_MOUNT)
        if self.root is None:
            return f"{_MOUNT}{name}"
        bucket, *parts = name.split("/")
        if ".." in (bucket, *parts) or "\0" in name or not bucket:
            raise OutsideBucket(
                f"{uri[:200]!r} points outside its bucket; expected gs://BUCKET/OBJECT", is_retryable=False
            )
        if not _BUCKET.fullmatch(bucket):
            text = "is not the name of a bucket; expected 3 to 63 lower-case letters, digits, '-', '_' and '.'"
            raise OutsideBucket(f"{uri[:200]!r}: {bucket[:80]!r} {text}", is_retryable=False)
        self.check_links(self.root / name)
        return str(self.root / name)

    def check_links(self, path: str | Path) -> None:
        """Refuse a path in the folder of a bucket from which a link leads out of it; other paths are not checked.

        Raises:
            OutsideBucket: It leads out of the bucket, which is the folder itself and not what a link names.
        """
        if self.root is None:
            return
        place, root = (Path(os.path.normpath(each)) for each in (path, self.root))
        if place == root or not place.is_relative_to(root):
            return
        name = place.relative_to(root)
        try:
            is_inside = place.resolve().is_relative_to(root.resolve() / name.parts[0])
        except (OSError, RuntimeError, ValueError):
            is_inside = False
        if not is_inside:
            text = f"{f'{_SCHEME}{name}'[:200]!r} is a link out of its bucket, or its name is too long"
            advice = "copy the files into the bucket, or give them in [buckets.files] of localvertex.toml"
            raise OutsideBucket(f"{text}; {advice}", is_retryable=False)

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables of steps for addresses in files; addresses in parameters are replaced."""
        return {"LOCALVERTEX_GCS_ROOT": str(self.root)} if self.root else {}

    def given_file(self, uri: str, *, copied: bool = False) -> Path | None:
        """Return the file or folder that the user gives for an address, or for one above it; None without one.

        Args:
            uri: The address.
            copied: Whether to return the run's own copy of it.
        """
        name = PurePosixPath(uri.removeprefix(_SCHEME).removeprefix(_MOUNT))
        for address, path in self.files.items():
            given = address.removeprefix(_SCHEME)
            if name.is_relative_to(given) and ".." not in name.parts:
                found = self.copies[path] if copied and self.copies is not None else path
                return found / name.relative_to(given)
        return None

    def check_writable(self, uri: str) -> None:
        """Refuse to write to a file or folder that the user gives for reading.

        Raises:
            OutsideBucket: An address or a path leads there.
        """
        path = Path(os.path.realpath(uri))
        read_only = (*self.files.values(), *(self.copies or {}).values())
        if self.given_file(uri) or any(path.is_relative_to(os.path.realpath(each)) for each in read_only):
            text = "is in [buckets.files], which is only read; expected an address outside it"
            raise OutsideBucket(f"{uri[:200]!r} {text}", is_retryable=False)

    def is_given(self, value: str) -> bool:
        """Return whether the user gives files for all addresses in a value."""
        return all(self.given_file(match[0]) for match in _OBJECT.finditer(value))

    def missing_bucket(self, address: str) -> Path | None:
        """Return the first missing bucket folder of the addresses in a value; None if all exist."""
        for match in _OBJECT.finditer(address):
            if self.given_file(match[0]):
                continue
            bucket = match[0].removeprefix(_SCHEME).removeprefix(_MOUNT).partition("/")[0]
            if self.root is not None and not (self.root / bucket).is_dir():
                return self.root / bucket
        return None

    def create_named(self, value: Any) -> None:
        """Create the missing folders of the buckets that a value of any shape names.

        Raises:
            OSError: One cannot be created.
        """
        for address in addresses(value) if self.root else ():
            while missing := self.missing_bucket(address):
                missing.mkdir(parents=True, exist_ok=True)

    def to_local_paths(self, value: Any) -> Any:
        """Return a parameter as a program of this machine can use it: with paths in place of the addresses in it.

        Raises:
            OutsideBucket: An address leads out of its bucket.
        """

        def located(text: Any) -> Any:
            if not isinstance(text, str) or not _ADDRESS.match(text.strip()):
                return text
            found = _OBJECT.sub(lambda match: self.local_path(match[0]), text)
            # A name may contain a space, where an address in a longer text ends.
            for each in (found, found.partition("=")[2]):
                self.check_links(each)
            return found

        return changed(value, located)

    def local_path(self, uri: str) -> str:
        """Return the path at which programs of this machine find the files of a URI, which is returned if they do not.

        Raises:
            OutsideBucket: The URI leads out of its bucket.
        """
        if not uri.startswith((_SCHEME, _MOUNT)):
            return uri
        given = self.given_file(uri, copied=True)
        return str(given) if given else self.path_of(uri) if self.root and not self.keeps_addresses else uri

    def model_files(self, uri: str) -> str:
        """Return the local path of a model's files, which must exist; the URI where they are not on this machine.

        Args:
            uri: A URI or path; empty for a model without files.

        Raises:
            OutsideBucket: The URI leads out of its bucket.
            TaskFailed: There are no files.
        """
        path = self.local_path(uri)
        if path and "://" not in path:
            entries = Path(path).rglob("*") if os.path.isdir(path) else ()
            is_empty = not any(each.is_symlink() or not each.is_dir() for each in entries)
            if is_empty and (os.path.isdir(path) or not os.path.exists(path)):
                text = f'There are no files under "{uri[:300]}" to copy: the program has to write its model there'
                raise TaskFailed(f"{text}; AIP_MODEL_DIR is the path of a folder here, not gs://", is_retryable=False)
        return path

    def mount(self, command: list[str]) -> list[str]:
        """Return a command of this machine so that its script, or kfp, finds the buckets here, and not at /gcs."""
        if self.root is None:
            return command
        sources = [index + 1 for index, word in enumerate(command[:-1]) if _PROGRAM in word]
        command = [
            _IN_SCRIPT.sub(self._in_script, word) if _TAKES_SCRIPT.fullmatch(before) else word
            for before, word in zip(["", *command], command, strict=False)
        ]
        if not sources:
            return command
        line = _MOUNTED.format(prefix=f"{self.root}{os.sep}")
        return [f"{word}\n{line}\n" if index == sources[0] else word for index, word in enumerate(command)]

    def _in_script(self, path: re.Match[str]) -> str:
        """Return a path in a script as it is here; what a script adds to the name of a bucket is not checked."""
        if given := self.given_file(path[0], copied=True):
            return f"{given}{'/' * path[0].endswith('/')}"
        return f"{self.root}/{path[0].removeprefix(_MOUNT)}"
