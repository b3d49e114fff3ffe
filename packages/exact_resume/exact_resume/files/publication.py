"""Commit folders completely or not at all, locally and on gs://, and refuse writes of a replaced process."""

import contextlib
import dataclasses
import os
import pathlib
import re
from collections.abc import Callable, Iterator, Mapping

from exact_resume.files import atomic_write, bucket, storage
from exact_resume.files.storage import MISSING, Path

_NUM_TRANSFERS = 8
"""Number of parallel uploads."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Fence:
    """Refuses the last step of a write by a process that another process has replaced.

    The writer prepares a partial file in the folder, calls `confirm`, and only then moves the file to its path. The
    successor takes the lease, which `confirm` reads, and then removes all partial files. If the writer freezes at any
    point, either `confirm` raises an exception or the move fails. On a mounted bucket, only `confirm` protects.
    """

    folder: str = ""
    """Folder for partial files; empty: there is no fence."""
    confirm: Callable[[], None] = lambda: None
    """Raises an exception if this process may no longer write."""

    def write(self, path: str, data: bytes) -> None:
        """Write a file atomically, or raise an exception if another process has taken over."""
        if storage.is_remote(path) and self.folder:
            self._copy(path, data)
        elif storage.is_object_store(path) or not self.folder:
            self.confirm()
            storage.write_bytes(path, data)
        else:
            target = pathlib.Path(path)
            with atomic_write.replacing(
                target, beside=pathlib.Path(self.folder, target.name), publish=self._move
            ) as file:
                file.write(data)

    def _move(self, aside: pathlib.Path, target: pathlib.Path) -> None:
        self.confirm()
        os.replace(aside, target)

    def _copy(self, path: str, data: bytes) -> None:
        """Write a partial object and copy it; the service refuses the copy once the partial object was removed."""
        partial = storage.join(self.folder, f".{os.urandom(4).hex()}.partial")
        generation = bucket.replace(partial, data, 0)
        self.confirm()
        bucket.copy(bucket.Version(path=partial, generation=generation, crc32c=""), path)
        # The next start removes what remains.
        with contextlib.suppress(OSError):
            bucket.remove(partial)


UNFENCED = Fence()


def is_occupied(final: Path, *, last: str, own: re.Pattern[str]) -> bool:
    """Return whether `committed_directory` would refuse the path.

    Locally: it exists and is not an empty folder. In a bucket: the file that is written last exists, or one that the
    writer never writes; the remains of an interrupted writer do not count.
    """
    if storage.is_remote(final):
        return any(name == last or not own.fullmatch(name) for name in _tree(final))
    if storage.is_object_store(final):
        return storage.exists(storage.join(final, last)) or not all(own.fullmatch(name) for name in _tree(final))
    return os.path.exists(final) and (not os.path.isdir(final) or bool(os.listdir(final)))


@contextlib.contextmanager
def committed_directory(
    final: Path,
    *,
    last: str,
    own: re.Pattern[str],
    copied: Mapping[str, bucket.Version] | None = None,
    is_checked: bool = False,
    fence: Fence = UNFENCED,
) -> Iterator[pathlib.Path]:
    """Yield a local folder to write into; its content appears at `final` when the block succeeds, and not before.

    Locally it is renamed at the end. To a bucket the files are copied, `last` after all others, because readers ignore
    a folder without it. The remains of interrupted writers are removed first, and never another file.

    Args:
        final: Local, gs:// or /gcs/; need not exist.
        last: Path of a file below the folder.
        own: All paths that may be written below the folder.
        copied: Path of a file below a folder on gs:// -> the object that is copied there instead of the file; it may
            be filled within the block.
        is_checked: Whether the caller knows from `is_occupied` that the path is not occupied.
        fence: Refuses the commit if another process has replaced this one.

    Raises:
        FileExistsError: The path is occupied.
    """
    if not is_checked and is_occupied(final, last=last, own=own):
        raise FileExistsError(f"{os.fspath(final)} exists and is not empty")
    if storage.is_object_store(final):
        with storage.scratch("upload") as folder:
            yield folder
            _upload(folder, final, last, copied or {}, own, fence)
        return
    target = pathlib.Path(final)
    target.parent.mkdir(parents=True, exist_ok=True)
    atomic_write.remove_left(target)
    with atomic_write.folder(target) as aside:
        yield aside
        _flush_to_disk(aside)
        fence.confirm()
        # A rename to an existing empty folder replaces it atomically (POSIX rename).
        os.rename(aside, target)


def _flush_to_disk(directory: pathlib.Path) -> None:
    """Flush the content before the rename that publishes it, so that a power failure cannot publish empty files."""
    for folder, _, files in os.walk(directory):
        for name in files:
            with open(os.path.join(folder, name), "rb") as file:
                os.fsync(file.fileno())


def _tree(directory: Path) -> Iterator[str]:
    """Yield the paths of all files below a folder in a bucket, relative to it."""
    if storage.is_remote(directory):
        yield from (name for name, _ in bucket.identities(os.fspath(directory)) if not name.endswith("/"))
        return
    for folder, _, files in os.walk(directory):
        yield from (os.path.relpath(os.path.join(folder, name), directory) for name in files)


def _upload(
    source: pathlib.Path,
    target: Path,
    last: str,
    copied: Mapping[str, bucket.Version],
    own: re.Pattern[str],
    fence: Fence,
) -> None:
    """Copy all files of a folder, `last` after the others, and remove what else an interrupted writer left."""
    # Its futures take 4 ms to import.
    from exact_resume.files.overlap import in_order

    files = sorted(path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file())
    others = [name for name in files if name != last]
    for name in filter(own.fullmatch, {*_tree(target)}.difference(files)):
        # Another attempt may be removing it at the same time.
        with contextlib.suppress(*MISSING):
            storage.remove(storage.join(target, name))

    def write(name: str) -> None:
        if name in copied:
            bucket.copy(copied[name], storage.join(target, name))
        else:
            _upload_file(source / name, storage.join(target, name))

    for _ in in_order(write, others, num_threads=_NUM_TRANSFERS):
        pass
    if fence.folder:
        fence.write(storage.join(target, last), (source / last).read_bytes())
    else:
        _upload_file(source / last, storage.join(target, last))


def _upload_file(source: pathlib.Path, target: str) -> None:
    if storage.is_remote(target):
        bucket.upload(str(source), target)
        return
    import shutil

    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copyfile(source, target)
