"""The folder beside the pipeline root where a source's next run finds the previous dataset, and parts of killed runs.

`latest.json` names the dataset. It is written before the dataset is published, and then names the one before as well,
so that at every moment one of them is complete.
"""

import dataclasses
import os
from typing import Any

from exact_resume.files import storage
from localvertex._base.userinput import paths
from localvertex._base.userinput.errors import UserError
from trainer.data.preparing import versions

_FILE = "latest.json"


class Unusable(Exception):
    """The previous dataset is missing or not as `prepare` made it."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class HistoryEntry:
    """A dataset as it was when `prepare` made it."""

    dataset: str
    """Its folder: absolute, or on gs://."""
    metadata_sha256: str
    """Digest of its dataset.json, which has the SHA-256 and CRC32C of each shard."""
    list_sha256: str
    """Digest of its list of images."""
    began_ns: int
    """Time before its first image was read, in nanoseconds."""
    is_published: bool
    """Whether it is certain that the dataset was published."""

    def is_equal(self, other: "HistoryEntry") -> bool:
        """Return whether another dataset, anywhere, has the same bytes."""
        return (self.metadata_sha256, self.list_sha256) == (other.metadata_sha256, other.list_sha256)


class NoHistory:
    """Without a pipeline root, nothing is kept."""

    folder = ""
    parts = ""

    def read(self) -> list[HistoryEntry]:
        """Return nothing."""
        return []

    def write(self, *entries: HistoryEntry) -> None:
        """Do nothing."""

    def unfinished_entry(self, address: str) -> HistoryEntry | None:
        """Return the entry of a dataset whose attempt was killed while, or after, it published it there."""
        try:
            entries = self.read()
        except Unusable:
            return None
        return next((entry for entry in entries[:1] if entry.dataset == address and not entry.is_published), None)


class ReadOnlyHistory(NoHistory):
    """A history that stays as it is."""

    def __init__(self, history: NoHistory) -> None:
        self._history = history

    def read(self) -> list[HistoryEntry]:
        """Return the entries of the history."""
        return self._history.read()


class History(NoHistory):
    """The folder of one source, image size and so on."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.parts = storage.join(folder, "parts")
        """Folder of the parts."""
        self._path = storage.join(folder, _FILE)

    def read(self) -> list[HistoryEntry]:
        """Return the newest datasets, the best one first; none before the first run.

        Raises:
            Unusable: The file is damaged.
        """
        found = storage.read_json(self._path)
        if found is None and not storage.exists(self._path):
            return []
        try:
            return [_entry(value) for value in found]
        except (TypeError, ValueError, UserError):
            raise Unusable(f"{self._path} is damaged") from None

    def write(self, *entries: HistoryEntry) -> None:
        """Replace the file."""
        storage.write_json(self._path, [dataclasses.asdict(entry) for entry in entries])


def of(pipeline_root: str, *, source: str, image_size: int, max_examples: int) -> NoHistory:
    """Return the history of such a dataset; any other version of the decoders or of the code has its own.

    Args:
        pipeline_root: Local or gs://; empty for none.
        source: As the user wrote it.
        image_size: Height and width of the prepared images in pixels.
        max_examples: Size of the sample, or 0.
    """
    if not pipeline_root:
        return NoHistory()
    key = {
        "source": source,
        # The same relative path is another folder elsewhere.
        "path": source if "://" in source else os.path.abspath(source),
        "image_size": image_size,
        "max_examples": max_examples,
        **versions.used_versions(),
    }
    return History(storage.join(pipeline_root, "prepared", versions.digest(key)))


def _entry(value: dict[str, Any]) -> HistoryEntry:
    entry = HistoryEntry(**value)
    is_valid = (
        all(isinstance(text, str) for text in (entry.dataset, entry.metadata_sha256, entry.list_sha256))
        and isinstance(entry.began_ns, int)
        and isinstance(entry.is_published, bool)
    )
    if not is_valid:
        raise ValueError
    paths.check("dataset", entry.dataset)
    return entry
