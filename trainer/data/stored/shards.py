"""The shards of a split on this machine's disk: a damaged one is named in one line, however deep it was read."""

import contextlib
import pathlib
import re
from collections.abc import Iterator, Sequence

from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import on_one_line

_PIECE_BYTES = 2**20
_MARK = re.compile(r"DamagedShard: (shard .+)")
"""How TensorFlow shows the error in its own, which it raises instead."""


class DamagedShard(UserError):
    """A shard has other content than `prepare` wrote."""


class Shards:
    """The records of several ArrayRecord files, in order. Safe for several threads."""

    def __init__(self, paths: Sequence[str], num_records: int) -> None:
        """Open the shards.

        Args:
            paths: ArrayRecord files, in order.
            num_records: Records in all files together, as dataset.json has it.

        Raises:
            DamagedShard: A file is not an ArrayRecord file, or the number of records is different.
            OSError: A file cannot be read.
        """
        from array_record.python.array_record_data_source import ArrayRecordDataSource

        self._paths = paths
        try:
            self._source = ArrayRecordDataSource(paths)
        except RuntimeError as error:
            raise self._damage(error) from None
        if len(self._source) != num_records:
            raise self._damage(RuntimeError(f"{len(self._source)} records instead of {num_records}"))

    def read(self, indices: Sequence[int]) -> list[bytes]:
        """Return the records at some indices.

        Raises:
            DamagedShard: They cannot be read.
            OSError: The disk or the mount fails.
        """
        try:
            return list(self._source.__getitems__(indices))
        except RuntimeError as error:
            raise self._damage(error) from None

    def __enter__(self) -> "Shards":
        self._source.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._source.__exit__(*error)

    def _damage(self, error: RuntimeError) -> DamagedShard:
        for path in self._paths:
            _read_through(path)
            if reason := _reason_against(path):
                return DamagedShard(f"shard {path} is damaged ({reason}); run prepare again, or copy it again")
        return DamagedShard(f"shard {' or '.join(self._paths)} is damaged ({_reason(error)}); run prepare again")


@contextlib.contextmanager
def damage_named() -> Iterator[None]:
    """Turn an error that TensorFlow raised because of a damaged shard into that one."""
    try:
        yield
    except DamagedShard:
        raise
    except Exception as error:
        if found := _MARK.search(str(error)):
            raise DamagedShard(found[1]) from None
        raise


def _read_through(path: str) -> None:
    """Read a whole file, so that an error of the disk is not taken for damage.

    Raises:
        OSError: It cannot be read.
    """
    with pathlib.Path(path).open("rb") as file:
        while file.read(_PIECE_BYTES):
            pass


def _reason_against(path: str) -> str:
    from array_record.python.array_record_module import ArrayRecordReader

    try:
        reader = ArrayRecordReader(path)
        is_whole = len(reader.read_all()) > 0
        reader.close()
    except RuntimeError as error:
        return _reason(error)
    return "" if is_whole else "it has no records"


def _reason(error: Exception) -> str:
    return on_one_line(error, 200) or "unreadable"
