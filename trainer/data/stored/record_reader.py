"""Records of a split by index, from the shards on this machine's disk."""

import functools
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from trainer.data.sampler import NUM_WINDOW_BLOCKS
from trainer.data.stored.shards import Shards

_Indices = npt.NDArray[np.int64]
_NUM_THREADS = 4


class RecordReader:
    """Reads single records, or whole blocks where the examples are shuffled by blocks. Safe for several threads."""

    def __init__(self, paths: Sequence[str], *, num_records: int, block_size: int) -> None:
        """Open the shards.

        Args:
            paths: ArrayRecord files, in order.
            num_records: Records in all files together.
            block_size: Number of records that are read together and cached; 0: each is read alone.

        Raises:
            DamagedShard: A file is damaged.
        """
        self._shards = Shards(paths, num_records)
        self._num_records = num_records
        self._block_size = block_size
        self._pool = ThreadPoolExecutor(_NUM_THREADS, thread_name_prefix="records")
        self._lock = threading.Lock()
        # The current window and the one that is read ahead, each with one more block at both ends.
        remembered = functools.lru_cache(2 * (NUM_WINDOW_BLOCKS + 2))
        self._started = remembered(lambda number: self._pool.submit(self._load, number))

    def read(self, indices: _Indices, upcoming: _Indices) -> npt.NDArray[np.object_]:
        """Return the records, bytes [B], at indices [B]; load the blocks of `upcoming` in the background."""
        if not self._block_size:
            return np.array(self._shards.read(indices.tolist()), dtype=object)
        needed = np.unique(indices // self._block_size).tolist()
        blocks = {number: self._block(number) for number in needed}
        for number in np.unique(upcoming // self._block_size).tolist():
            self._block(number)
        records = [blocks[index // self._block_size].result()[index % self._block_size] for index in indices.tolist()]
        return np.array(records, dtype=object)

    def _block(self, number: int) -> Future[list[bytes]]:
        # Without the lock, two threads could start to read the same block.
        with self._lock:
            return self._started(number)

    def _load(self, number: int) -> list[bytes]:
        start = number * self._block_size
        end = min(start + self._block_size, self._num_records)
        return self._shards.read(list(range(start, end)))
