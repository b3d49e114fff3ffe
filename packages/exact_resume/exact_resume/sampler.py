"""Which examples a step trains on: a pure function of (seed, step), so a resumed run has no order to restore.

Each epoch visits the examples in an order of its own. Where a permutation puts a number is computed for that number
alone, by a block cipher (Simon, https://eprint.iacr.org/2013/404) that is applied until the result is an example: no
list of all examples is in memory. The numbers are those of TensorFlow's `RandomIndexShuffle` with 4 rounds.

Legend: N examples, G global batch.
"""

import dataclasses
import functools
import operator
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from exact_resume.errors import InputError

_Indices = npt.NDArray[np.int64]
_FIRST_KEY = 498247692
"""The constant of `tf.random.experimental.index_shuffle` that precedes the seed and the epoch."""
_SMALLEST_WORD = 8
"""Bits of half a number."""
_CHUNK = 2**16
"""Positions of an epoch that are computed together: half a megabyte."""
_FEW = 4096
"""Examples up to which all 256 orders are kept, of 8 megabytes, because an epoch has too few steps for their cost."""


class Worker(Protocol):
    """A worker's place among all; a run is one."""

    rank: int
    """Number of this worker, from 0 on."""
    num_workers: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sampler:
    """The order of the training examples: whole batches, equal for any number of workers.

    The examples that fill no whole batch are left out of an epoch; in another epoch these are others. Up to 65,536
    examples, the cipher has keys of 8 bits: after 256 epochs, the same orders come again.

    Raises:
        InputError: A number is out of its range.
    """

    num_examples: int
    """N."""
    global_batch_size: int
    """G: examples of a step, which is one update of the weights, over all workers and micro-batches."""
    seed: int = 0
    num_micro_batches: int = 1
    """Parts of a batch whose gradients are accumulated."""

    def __post_init__(self) -> None:
        bounds = {
            "num_examples": (1, 2**62),
            "global_batch_size": (1, self.num_examples),
            "seed": (0, 2**31 - 1),
            "num_micro_batches": (1, self.global_batch_size),
        }
        for name, (lowest, highest) in bounds.items():
            value = getattr(self, name)
            if type(value) is not int or not lowest <= value <= highest:
                raise InputError(f"{name} is {value!r}; expected a whole number from {lowest} to {highest}")

    @property
    def steps_per_epoch(self) -> int:
        """Number of whole batches in an epoch."""
        return self.num_examples // self.global_batch_size

    def indices(self, step: int) -> _Indices:
        """Return the indices int64 [G] of a step's examples, 0 to N - 1; the first step is 0."""
        epoch, batch = divmod(operator.index(step), self.steps_per_epoch)
        first = batch * self.global_batch_size
        return order(first, first + self.global_batch_size, self.seed, epoch, self.num_examples)

    def shard(self, step: int, worker: Worker, *, micro: int = 0) -> _Indices:
        """Return the indices of a worker's examples in a micro-batch of a step.

        A batch is cut into `num_micro_batches` parts, and each part into one for each worker, in their order. Where
        the numbers do not divide, sizes differ by one: part i of n has the positions from `i * size // n` on.
        """
        found: _Indices = part(self.indices(step), micro, self.num_micro_batches)
        if worker.num_workers > 1:
            found = part(found, worker.rank, worker.num_workers)
        return found

    def batches(self, *, start: int, stop: int, worker: Worker) -> "Batches":
        """Return a worker's indices from one step to before another, as `batch_sampler` of a torch `DataLoader`.

        Read-ahead and worker processes of the loader change nothing: a resumed run starts at the step that comes next.
        Give the loader a `generator` of its own, because it draws a seed from the global one whenever it is iterated.
        """
        return Batches(
            (
                self.shard(step, worker, micro=micro).tolist()
                for step in range(start, stop)
                for micro in range(self.num_micro_batches)
            ),
            max(0, stop - start) * self.num_micro_batches,
        )


class Batches(Iterator[list[int]]):
    """Lists of indices, and how many there are in all: a loader of PyTorch asks for it."""

    def __init__(self, items: Iterator[list[int]], num_items: int) -> None:
        self._items, self._num_items = items, num_items

    def __next__(self) -> list[int]:
        return next(self._items)

    def __len__(self) -> int:
        return self._num_items


def order(start: int, stop: int, seed: int, epoch: int, count: int) -> _Indices:
    """Return the examples from one position of an epoch to before another: int64, read-only, of `count` in all."""
    pieces = [
        permuted(first, min(first + _CHUNK, count), seed, epoch, count)
        for first in range(start // _CHUNK * _CHUNK, stop, _CHUNK)
    ]
    found = np.concatenate(pieces) if len(pieces) > 1 else pieces[0]
    return found[start % _CHUNK :][: stop - start]


def part(indices: Any, number: int, count: int) -> Any:
    """Return a part of several: part i of n has the positions from `i * size // n` on."""
    if not 0 <= number < count:
        raise InputError(f"part {number} of a batch in {count} parts does not exist; expected 0 to {count - 1}")
    return indices[number * len(indices) // count : (number + 1) * len(indices) // count]


def permuted(start: int, stop: int, seed: int, epoch: int, count: int) -> _Indices:
    """Return where a permutation of `count` numbers puts those from `start` to before `stop`: int64, read-only."""
    # At a power of 4, TensorFlow has one bit too few for the largest number: one is there twice, another never.
    word = max(_SMALLEST_WORD, ((count - 1).bit_length() + 1) // 2)
    mask = (1 << word) - 1
    find = _of_all_epochs if count <= _FEW else _of_last_epochs
    return find(start, stop, seed & mask, epoch & mask, count, word)


def _permuted(start: int, stop: int, seed: int, epoch: int, count: int, word: int) -> _Indices:
    """Encrypt each number until the result is one of the `count` numbers; `word` is the number of bits of a half."""
    mask = (1 << word) - 1

    def turned(side: Any, by: int) -> Any:
        return side << by | side >> (word - by)

    def mixed(side: Any) -> Any:
        return turned(side, 1) & turned(side, 8) ^ turned(side, 2)

    last_key = 0xFFFFFFFD ^ _FIRST_KEY ^ turned(epoch, word - 3) ^ turned(epoch, word - 4)
    keys = ((_FIRST_KEY & mask, seed), (epoch, last_key & mask))

    def encrypted(left: Any, right: Any) -> Any:
        # Bits beyond the word are cut after the exclusive or, once.
        for left_key, right_key in keys:
            left = (left ^ mixed(right) ^ left_key) & mask
            right = (right ^ mixed(left) ^ right_key) & mask
        return left << word | right

    if word == _SMALLEST_WORD:
        # Few examples are reached only after many encryptions. So a table of all numbers is applied to itself a few
        # times: each entry is several encryptions ahead then, but never beyond an example. It is computed in parts,
        # because the C library returns large arrays to the system, which costs as much as the computation.
        halves = np.arange(2**word, dtype=np.uint16)
        table = np.concatenate([encrypted(part, halves) for part in halves.reshape(4, -1, 1)]).ravel()
        values = table[start:stop].copy()
        table[:count] = np.arange(count)
        num_squarings = (2 * word + 1 - count.bit_length()) // 2
        while (values >= count).any():
            for _ in range(8):
                values = table.take(values)
            if num_squarings:
                num_squarings -= 1
                for part in table.reshape(8, -1):
                    part[:] = table.take(part)
    else:
        values = np.arange(start, stop, dtype=np.uint32 if word <= 16 else np.uint64)
        remaining = np.arange(len(values))
        while len(remaining):
            found = values[remaining]
            values[remaining] = found = encrypted(found >> word, found & mask)
            remaining = remaining[found >= count]
    result: _Indices = values.astype(np.int64)
    result.flags.writeable = False
    return result


_of_all_epochs = functools.lru_cache(maxsize=2**_SMALLEST_WORD)(_permuted)
_of_last_epochs = functools.lru_cache(maxsize=4)(_permuted)
