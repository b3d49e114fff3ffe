"""Which files of a source are manifests: one file, all that match a pattern, or those of a folder."""

import errno
import fnmatch
import glob
import io
import os
import re
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import BinaryIO

from exact_resume.files import bucket
from localvertex_base.userinput import paths
from localvertex_base.userinput.errors import UserError
from trainer.data.sources.folder import is_of_kernel, open_at_once, printable
from trainer.data.sources.layout import is_system_name
from trainer.data.sources.manifests import csv_lines, json_lines
from trainer.data.sources.manifests.entry import Entry

_MAX_BYTES = 2**28
"""Larger manifests are refused: at this size they have about a million lines."""
_FORMATS = {".csv": csv_lines.parse, ".jsonl": json_lines.parse, ".json": json_lines.parse}
_SHARD = re.compile(r"[^.]+-\d+-of-\d+")
"""Name of a shard without an ending, which then has JSON Lines."""
_SPLITS = {"training-": "train", "validation-": "validation", "test-": "test"}
"""Begin the names of the files that Vertex AI hands to jobs."""
_GS = "gs://"
_MAGIC = re.compile(r"[*?\[]")
_EXPECTED = "expected .csv or .jsonl files in Vertex AI's import format"


@dataclass(frozen=True, kw_only=True)
class ManifestFile:
    """One manifest."""

    path: str
    """Absolute, or on gs://."""
    name: str
    """For messages: its path below the source."""

    @property
    def base(self) -> str:
        """Folder where relative addresses start."""
        return self.path.rpartition("/")[0] or "/"

    @property
    def split(self) -> str:
        """Split of the lines without ml_use; empty: prepare decides."""
        name = os.path.basename(self.path).lower()
        return next((split for prefix, split in _SPLITS.items() if name.startswith(prefix)), "")

    @property
    def parse(self) -> Callable[..., Entry]:
        """Return what a line states."""
        return _FORMATS.get(os.path.splitext(self.path)[1].lower(), json_lines.parse)

    def open(self) -> BinaryIO:
        """Open it for reading.

        Raises:
            UserError: It is missing, too large, or not a regular file.
        """
        try:
            if self.path.startswith(_GS):
                return io.BytesIO(bucket.read(self.path, max_bytes=_MAX_BYTES))
            file = open(self.path, "rb", opener=open_at_once)
        except FileNotFoundError:
            raise UserError(f"manifest {paths.display(self.path)} not found; check the path") from None
        except OSError as error:
            raise self._too_large() if error.errno == errno.EFBIG else error from None
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or is_of_kernel(os.path.realpath(self.path)):
            file.close()
            raise UserError(f"manifest {paths.display(self.path)} is not a regular file; give a file or a folder")
        if status.st_size > _MAX_BYTES:
            file.close()
            raise self._too_large()
        return file

    def _too_large(self) -> UserError:
        return UserError(f"manifest {paths.display(self.path)} has more than {_MAX_BYTES:,} bytes; split it")


def is_named(source: str) -> bool:
    """Return whether a source is a manifest or a pattern of manifests by its name."""
    is_manifest = os.path.splitext(source)[1].lower() in _FORMATS
    return is_manifest or (bool(_MAGIC.search(source)) and not _exists(source))


def find(source: str) -> list[ManifestFile]:
    """Return the manifests of a source, sorted by path; none if it is a folder with a sub-folder per class.

    Args:
        source: A manifest, a pattern, or a folder, local or on gs://.

    Raises:
        UserError: Nothing matches the pattern.
    """
    if (magic := _MAGIC.search(source)) and not _exists(source):
        fixed, matching = _match(source, source[: magic.start()])
        if not (found := _files(fixed, filter(_is_manifest, matching))):
            raise UserError(f"source {paths.display(source)} matches no manifest; {_EXPECTED}")
        return found
    is_local = not source.startswith(_GS)
    path = os.path.abspath(os.path.expanduser(source)) if is_local else source.rstrip("/")
    is_folder = is_local and os.path.isdir(path)
    if os.path.splitext(path)[1].lower() in _FORMATS and not is_folder:
        return _files(path.rpartition("/")[0], [path])
    return _files(path, (_in_folder if is_local else _in_bucket)(path))


def _files(base: str, found: Iterable[str]) -> list[ManifestFile]:
    return [ManifestFile(path=path, name=printable(path[len(base) :].lstrip("/"))) for path in sorted(found)]


def _is_manifest(path: str) -> bool:
    name = os.path.basename(path)
    known = os.path.splitext(name)[1].lower() in _FORMATS or _SHARD.fullmatch(name) is not None
    return known and not is_system_name(name)


def _is_found(name: str) -> bool:
    """Return whether a file of a folder is a manifest; those in .json are more often something else."""
    return _is_manifest(name) and not name.lower().endswith(".json")


def _exists(path: str) -> bool:
    if not path.startswith(_GS):
        return os.path.lexists(os.path.expanduser(path))
    return bool(bucket.names(path.rstrip("/"))) or bucket.exists(path)


def _match(pattern: str, beginning: str) -> tuple[str, list[str]]:
    """Return the folder in which a pattern begins, and all paths that match; a * never stands for a slash."""
    if not pattern.startswith(_GS):
        fixed = os.path.abspath(os.path.dirname(os.path.expanduser(beginning)))
        return fixed, [os.path.abspath(path) for path in glob.glob(os.path.expanduser(pattern))]
    fixed = beginning.rpartition("/")[0]
    parts = pattern[len(fixed) + 1 :].split("/")
    names = [name for name in bucket.tree(fixed) if name.count("/") == len(parts) - 1]
    return fixed, [f"{fixed}/{name}" for name in names if all(map(fnmatch.fnmatchcase, name.split("/"), parts))]


def _in_folder(path: str) -> list[str]:
    """Return the manifests of a folder that has no other folders, which would be classes."""
    try:
        with os.scandir(path) as entries:
            shown = [entry for entry in entries if not is_system_name(entry.name)]
            has_folders = any(entry.is_dir() for entry in shown)
    except OSError:  # reported by the source that lists folders
        return []
    return [] if has_folders else [entry.path for entry in shown if _is_found(entry.name)]


def _in_bucket(path: str) -> list[str]:
    """Return the manifests of a folder on gs:// that has no other folders."""
    if not (found := list(filter(_is_found, bucket.names(path)))):
        return []
    has_folders = any("/" in name for name in bucket.tree(path) if not any(map(is_system_name, name.split("/"))))
    return [] if has_folders else [f"{path}/{name}" for name in found]
