"""Rows of images that need not be read again, from the previous dataset and parts of a killed attempt, on disk."""

import contextlib
import dataclasses
import functools
from collections.abc import Iterable, Iterator, Sequence

from exact_resume.files.overlap import batched, in_groups
from trainer.data.preparing import parts
from trainer.data.preparing.engines.factory import Engine
from trainer.data.preparing.parts import DamagedPart
from trainer.data.preparing.previous.dataset import NoPreviousDataset
from trainer.data.preparing.rows import NARROW, Row, Rows, Values, to_values
from trainer.data.sources.source import Identity, SourceImage
from trainer.files.progress import Progress

SETTLING_NS = 100_000_000
"""A file may change twice while the clock of its file system stands still, at most some hundredths of a second."""
_SECOND_NS = 10**9
_SETTLING_SECONDS_NS = 21 * SETTLING_NS
"""FAT has times of two seconds, and HFS+ and older ext ones of one second."""
_SCHEMA = f"""
CREATE TABLE known ({NARROW}, text, identity);
CREATE TABLE places (number INTEGER PRIMARY KEY, place);
CREATE TABLE asked (number, label, split, found);
"""
_SPLITS = "INSERT OR IGNORE INTO previous SELECT content_hash, split FROM known WHERE reason = ''"
_NUMBER = """
INSERT INTO places
SELECT rowid, ROW_NUMBER() OVER (PARTITION BY origin ORDER BY content_hash, label, name) - 1 FROM known
WHERE reason = ''
"""
_FIND = """
INSERT INTO asked VALUES (?, ?, ?, (SELECT rowid FROM known WHERE name = ? AND identity = ? LIMIT 1))
"""
_TAKE = f"""
INSERT INTO images ({NARROW}, text, stored_label)
SELECT name, asked.label, asked.split, reason, content_hash, stored_hash, num_stored_bytes, origin,
    COALESCE(place, offset), text, CASE WHEN origin = '' THEN NULL ELSE known.label END
FROM asked JOIN known ON known.rowid = found LEFT JOIN places ON places.number = found ORDER BY asked.number
"""  # noqa: S608 - constants

Found = tuple[Values, Identity]
"""The content of a row, as `to_values` returns it, and the identity of its image."""


_NUM_THREADS = 16
_GROUP = 16
"""Number of images whose identities are looked up together."""
_BATCH_SIZE = 256
"""Number of images whose rows are looked up together."""


class PreviousRows:
    """Rows by the name and the identity of their image."""

    def __init__(self, rows: Rows) -> None:
        """Prepare to move known rows into `rows`, in whose file they are."""
        self._rows, self._database = rows, rows.database
        for statement in _SCHEMA.split(";"):
            self._database.execute(statement)

    def add_previous(self, rows: Iterable[Found], *, began_ns: int, is_trusted: bool) -> None:
        """Add all rows of the previous dataset, once.

        Args:
            rows: What they contain, with the split of each image that is used, and their identities.
            began_ns: Time before the first image of that dataset was read.
            is_trusted: Whether its rows can be taken; otherwise only its splits are known.
        """
        self._add(rows, began_ns)
        self._database.execute(_SPLITS)
        # Records are in the order of their numbers, so that one is found without a search.
        self._database.execute(_NUMBER if is_trusted else "DELETE FROM known")

    def add_part(self, rows: Iterable[Row], *, began_ns: int) -> None:
        """Add the rows of a part, with the engine's offsets.

        Args:
            rows: In any order.
            began_ns: Time before the first image of the part was read.
        """
        self._add(((to_values(row), row.identity) for row in rows), began_ns)

    def sort(self) -> None:
        """Sort the added rows, so that `take` finds them."""
        self._database.execute("CREATE INDEX by_name ON known (name, identity)")

    def take(self, images: Sequence[tuple[SourceImage, Identity]]) -> list[tuple[SourceImage, Identity]]:
        """Copy the rows of images, each with its current label and split, and return the images that have no row."""
        self._database.executemany(
            _FIND,
            (
                (number, image.label, image.split, image.name, _key(identity))
                for number, (image, identity) in enumerate(images)
            ),
        )
        self._database.execute(_TAKE)
        unknown = self._database.execute("SELECT number FROM asked WHERE found IS NULL ORDER BY number").fetchall()
        self._database.execute("DELETE FROM asked")
        return [images[number] for (number,) in unknown]

    def _add(self, rows: Iterable[Found], began_ns: int) -> None:
        known = ((*found, _key(identity) if _is_settled(identity, began_ns) else None) for found, identity in rows)
        self._rows.insert("known", known, "identity")


def _key(identity: Identity) -> str | None:
    """Return the compared part of an identity; None, which equals nothing, if it is empty."""
    return repr(sorted(identity.items())) if identity else None


def _is_settled(identity: Identity, began_ns: int) -> bool:
    """Return whether the image cannot have changed without a trace in its identity."""
    ctime_ns = int(identity.get("ctime_ns", 0))
    settling_ns = SETTLING_NS if ctime_ns % _SECOND_NS else _SETTLING_SECONDS_NS
    return ctime_ns < began_ns - settling_ns


def gather(
    images: Iterable[SourceImage],
    image_size: int,
    engine: Engine,
    rows: Rows,
    previous: NoPreviousDataset,
    *,
    is_trusted: bool,
    parts_folder: str,
    progress: Progress,
) -> int:
    """Add a row for each image, and return how many images were read.

    Args:
        images: All of the source, not read yet.
        image_size: Height and width of the prepared images in pixels.
        engine: Reads the images that the previous dataset does not have.
        rows: Grow by one per image, and get the previous splits.
        previous: Images with the same name and identity are not read again.
        is_trusted: Whether that holds; otherwise nothing of the previous dataset is used except its splits.
        parts_folder: Where parts of an earlier attempt are found; empty for none.
        progress: Advances with the images.
    """
    previous_rows = PreviousRows(rows)
    if previous.entry:
        previous_rows.add_previous(previous.rows(), began_ns=previous.entry.began_ns, is_trusted=is_trusted)
    for name in parts.names(parts_folder) if parts_folder else ():
        # A killed attempt left a damaged one, or someone changed it: its images are read.
        with contextlib.suppress(DamagedPart):
            own, began_ns = engine.take_part(name)
            previous_rows.add_part(own, began_ns=began_ns)
    if parts_folder or (previous.entry and is_trusted):
        previous_rows.sort()
        images = _unknown(images, previous_rows, progress)
    num_read = 0
    for some in engine.read(images, image_size):
        rows.add(some)
        progress.advance(len(some))
        num_read += len(some)
    return num_read


def _unknown(images: Iterable[SourceImage], previous_rows: PreviousRows, progress: Progress) -> Iterator[SourceImage]:
    """Yield the images that have to be read, and add the rows of the others."""
    # One request per image, where a manifest names objects.
    identified = in_groups(_identity, images, group_size=_GROUP, num_threads=_NUM_THREADS)
    for some in batched(identified, _BATCH_SIZE):
        unknown = previous_rows.take(some)
        num_known = len(some) - len(unknown)
        progress.advance(num_known, num_known=num_known)
        for image, identity in unknown:
            yield dataclasses.replace(image, identity=functools.partial(dict, identity)) if identity else image


def _identity(image: SourceImage) -> Identity:
    """Return the identity of an image; empty if it cannot be looked at, which reading it finds again."""
    try:
        return image.identity()
    except OSError:
        return {}
