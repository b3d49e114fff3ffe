"""The prepared images of all rows, wherever they are."""

from collections.abc import Iterable, Iterator

from exact_resume.files.overlap import batched
from trainer.data.preparing import shards
from trainer.data.preparing.engines.engine import Engine
from trainer.data.preparing.previous.dataset import NoPreviousDataset
from trainer.data.preparing.rows import Row, RowBytes

_BATCH_SIZE = 256
"""Number of records that are read at a time."""


class Prepared:
    """The prepared images of all rows: in the previous dataset, or of this attempt."""

    def __init__(self, engine: Engine, previous: NoPreviousDataset) -> None:
        """Keep both."""
        self.engine = engine
        self.previous = previous

    def images(self, rows: Iterable[Row]) -> Iterator[RowBytes]:
        """Yield each row with its prepared image."""
        for some in batched(rows, _BATCH_SIZE):
            old = self.previous.images([row for row in some if row.origin])
            new = self.engine.images([row for row in some if not row.origin])
            for row in some:
                yield (row, next(old)) if row.origin else next(new)

    def records(self, rows: Iterable[Row]) -> Iterator[RowBytes]:
        """Yield each row with its record as it is to be stored."""
        return shards.serialize_rows(self.images(rows))
