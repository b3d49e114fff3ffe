"""Find the manifests of a source: one file, or the files of a folder."""

import errno
import io
import os
import re
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import BinaryIO

from exact_resume.files import bucket
from localvertex._base.userinput import paths
from localvertex._base.userinput.errors import UserError
from trainer.data.sources.folder import printable
from trainer.data.sources.layout import is_system_name
from trainer.data.sources.manifests import lines
from trainer.data.sources.manifests.lines import Entry
from trainer.data.sources.opening import is_of_kernel, open_at_once

_MAX_BYTES = 2**28
"""Larger manifests are refused: at this size they have about a million lines."""
_FORMATS = {".csv": lines.parse_csv, ".jsonl": lines.parse_json, ".json": lines.parse_json}
_SHARD = re.compile(r"[^.]+-\d+-of-\d+")
"""Name of a shard without an ending, which then has JSON Lines."""
_SPLITS = {"training-": "train", "validation-": "validation", "test-": "test"}
"""Begin the names of the files that Vertex AI hands to jobs."""
_GS = "gs://"


@dataclass(frozen=True, kw_only=True)
class ManifestFile:
    """One manifest."""

    path: str
    """Absolute, or on gs://."""
    name: str
    """Name in messages: the path below the source."""

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
        return _FORMATS.get(os.path.splitext(self.path)[1].lower(), lines.parse_json)

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
    """Return whether a source is a manifest by its name."""
    return os.path.splitext(source)[1].lower() in _FORMATS


def find(source: str) -> list[ManifestFile]:
    """Return the manifests of a source, sorted by path; none if it is a folder with a sub-folder per class.

    Args:
        source: A manifest or a folder, local or on gs://.
    """
    is_local = not source.startswith(_GS)
    path = os.path.abspath(os.path.expanduser(source)) if is_local else source.rstrip("/")
    if is_named(path) and not (is_local and os.path.isdir(path)):
        return _files(path.rpartition("/")[0], [path])
    return _files(path, (_in_folder if is_local else _in_bucket)(path))


def _files(base: str, found: Iterable[str]) -> list[ManifestFile]:
    return [ManifestFile(path=path, name=printable(path[len(base) :].lstrip("/"))) for path in sorted(found)]


def _is_found(name: str) -> bool:
    """Return whether a file of a folder is a manifest; those in .json are more often something else."""
    is_manifest = os.path.splitext(name)[1].lower() in (".csv", ".jsonl") or _SHARD.fullmatch(name) is not None
    return is_manifest and not is_system_name(name)


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
