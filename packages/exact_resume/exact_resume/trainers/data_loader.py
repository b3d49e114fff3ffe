"""PyTorch's DataLoader with batches that are a function of (seed, epoch, number of the batch).

    loader, position = data_loader.resumable(loader, seed=0, rank=run.rank, num_workers=run.num_workers)
    position.epoch, position.first_batch = 3, 40
    for batch in loader:  # 40, 41, ... of epoch 3
        train(batch)

A shuffling loader gets the order of `exact_resume.Sampler`, with the last, short batch unless `drop_last` is set. Any
other sampler draws under a seed of its epoch, 64 batches ahead. A batch of all workers together is `batch_size *
num_workers` consecutive examples, so it is the same for any number of workers with the same product.

What `__getitem__` and `collate_fn` draw depends on (seed, epoch, number of the batch, rank) alone, from the global
generators and from those that the dataset and `collate_fn` have as attributes; the training's own random numbers are
not disturbed. An iterable dataset is read from its beginning, up to the first batch.
"""

import dataclasses
import functools
import hashlib
import itertools
import random
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import exact_resume.sampler as samplers
from exact_resume.errors import InputError

_NUM_DRAWN_AHEAD = 64
"""Batches of another sampler whose indices are drawn at once, because exchanging generators costs a batch's time."""
_NUMPY: Any = np.random
"""NumPy; its types lack the functions that exchange the generator."""
_DEPTH = 4
"""Levels of attributes in which generators are looked for."""
_OPTIONS = (
    *("num_workers", "pin_memory", "timeout", "worker_init_fn", "multiprocessing_context", "prefetch_factor"),
    *("persistent_workers", "pin_memory_device"),
)


@dataclasses.dataclass(kw_only=True)
class Position:
    """The position at which the next iteration of a loader begins."""

    epoch: int = 0
    """Set it before each iteration."""
    first_batch: int = 0
    """First batch of the next iteration; later iterations begin at 0."""

    def take(self) -> tuple[int, int]:
        """Return both for an iteration that begins."""
        first, self.first_batch = self.first_batch, 0
        return self.epoch, first


def resumable(loader: Any, *, seed: int, rank: int = 0, num_workers: int = 1) -> tuple[Any, Position]:
    """Return a loader of the same batches in an order that can be resumed, and its position.

    Args:
        loader: A `torch.utils.data.DataLoader` over all examples, not yet divided between workers.
        seed: Seed of the order, and of the random numbers of the examples.
        rank: Rank of this worker.
        num_workers: Number of workers of the training; each gets its part of a batch.

    Raises:
        InputError: The order cannot be restored; the message names what has it.
    """
    data = sys.modules["torch"].utils.data
    if type(loader).__iter__ is not data.DataLoader.__iter__ or not getattr(loader, "in_order", True):
        raise InputError(
            f"the training data come from a {type(loader).__name__} whose order cannot be restored; give a"
            " torch.utils.data.DataLoader with in_order=True"
        )
    options = {name: getattr(loader, name) for name in _OPTIONS}
    # It draws a seed whenever it is iterated, which must not come from the global generator.
    options["generator"] = sys.modules["torch"].Generator()
    position = Position()
    if isinstance(loader.dataset, data.IterableDataset):
        if loader.num_workers or num_workers > 1:
            raise InputError(
                f"the training data are an iterable {type(loader.dataset).__name__} that several processes read; give"
                " num_workers=0 and one worker, or a dataset with __getitem__"
            )
        items = _iterable(loader, position, seed)
        size = {"batch_size": loader.batch_size, "drop_last": loader.drop_last}
        return data.DataLoader(items, **size, collate_fn=items.collate, **options), position
    if loader.batch_sampler is None:
        raise InputError("the training's DataLoader has batch_size=None; give it a batch_size")
    examples = _Examples(loader.dataset, loader.collate_fn, (seed, rank))
    batches = _batches(loader, position, seed, rank, num_workers)
    return data.DataLoader(examples, batch_sampler=batches, collate_fn=examples.collate, **options), position


class _Draws:
    """Draws random numbers apart from those of the training, whose global generators are restored afterwards."""

    def __init__(self, *owners: Any) -> None:
        """Find the generators among the attributes of objects, which are seeded as well."""
        self._own = _generators_of(*owners)
        # Exchanging NumPy's generator takes 1 microsecond, copying its state 100.
        self._numbers = np.random.MT19937(0)
        self._python = _Python()
        self._before: Any = None
        self._after: Any = None

    def begin(self, *parts: int | str) -> None:
        """Draw as the parts of a seed say, or go on without any where `end` was called."""
        numbers = _NUMPY.get_bit_generator()
        self._before = self._python.state(), [each.get_state() for each in _torch_generators()], numbers
        _NUMPY.set_bit_generator(self._numbers)
        if parts:
            self.seed(*parts)
        else:
            _restore(*self._after)

    def end(self, *, continues: bool = False) -> None:
        """Put the generators back."""
        if continues:
            self._after = random.getstate(), [each.get_state() for each in _torch_generators()]
        *others, numbers = self._before
        _NUMPY.set_bit_generator(numbers)
        _restore(*others)

    def seed(self, *parts: int | str) -> None:
        """Seed the global generators and the found generators."""
        seed = int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()) >> 1
        random.seed(seed)
        np.random.seed(seed % 2**32)
        for generator in _torch_generators():
            generator.manual_seed(seed)
        for generator in self._own:
            if hasattr(generator, "manual_seed"):
                generator.manual_seed(seed)
            elif isinstance(generator, np.random.Generator):
                generator.bit_generator.state = type(generator.bit_generator)(seed).state
            else:
                generator.seed(seed % 2**32)


class _Python:
    """The state of Python's generator, which takes 20 microseconds to read: read again only if it has changed.

    It has not if its next 32 bits are those that were next when it was put back, and no number of `gauss` has been
    taken. They are looked at in each case, so that a resumed run has the same state as one that was not interrupted:
    where they were the first of 624 words, the state is that before the first of the next words.
    """

    def __init__(self) -> None:
        self._kept: Any = None
        self._next = -1

    def state(self) -> Any:
        """Return the state, which is 32 bits behind the generator."""
        bits, generator = random.getrandbits(32), random.getstate.__self__  # type: ignore[attr-defined]
        if bits != self._next or generator.gauss_next != self._kept[2]:
            version, words, gauss = random.getstate()
            self._kept, self._next = (version, (*words[:-1], words[-1] - 1), gauss), bits
        return self._kept


def _torch_generators() -> list[Any]:
    torch = sys.modules["torch"]
    return [torch.default_generator, *(torch.cuda.default_generators if torch.cuda.is_initialized() else ())]


def _restore(python: Any, of_torch: Sequence[Any]) -> None:
    random.setstate(python)
    for generator, state in zip(_torch_generators(), of_torch, strict=False):
        generator.set_state(state)


def _generators_of(*owners: Any) -> list[Any]:
    """Return the random generators among the attributes of objects."""
    kinds = (sys.modules["torch"].Generator, np.random.Generator, np.random.RandomState, random.Random)
    left, seen, found = [(each, 0) for each in owners], set(), list[Any]()
    while left:
        value, depth = left.pop()
        if id(value) in seen or depth > _DEPTH or isinstance(value, type | types.ModuleType):
            continue
        seen.add(id(value))
        inner: Any = ()
        if isinstance(value, kinds):
            found.append(value)
        elif isinstance(value, functools.partial | types.MethodType):
            inner = value.__reduce__()[1:] if isinstance(value, functools.partial) else [value.__self__]
        elif isinstance(value, list | tuple | dict):
            inner = itertools.islice(value.values() if isinstance(value, dict) else value, 1000)
        elif hasattr(value, "__dict__"):
            inner = vars(value).values()
        left += [(each, depth + 1) for each in inner]
    return found


class _Batch(list[int]):
    """Indices of a batch that know which one it is, even in the loader's processes."""

    def __init__(self, indices: Sequence[int], epoch: int, number: int) -> None:
        super().__init__(indices)
        self.epoch, self.number = epoch, number


class _Batches:
    """The batch sampler of a resumable loader."""

    def __init__(
        self, position: Position, num_batches: Callable[[], int], indices: Callable[[int, int], Iterator[list[int]]]
    ) -> None:
        self._position, self._num_batches, self._indices = position, num_batches, indices

    def __len__(self) -> int:
        """Return the number of batches of a whole epoch."""
        return self._num_batches()

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next iteration."""
        self._position.epoch = epoch

    def __iter__(self) -> Iterator[_Batch]:
        # At the first batch, because a loader with processes makes two iterators and uses one.
        epoch, first = self._position.take()
        for number, each in enumerate(self._indices(epoch, first), first):
            yield _Batch(each, epoch, number)


def _batches(loader: Any, position: Position, seed: int, rank: int, num_workers: int) -> _Batches:
    data = sys.modules["torch"].utils.data
    inner = loader.batch_sampler
    while type(inner).__module__.startswith("accelerate."):
        # It divides the batches between workers.
        inner = inner.batch_sampler
    count, source = len(loader.dataset), inner

    def share(batch: Any) -> Any:
        if num_workers == 1:
            return batch
        # Of a last batch with fewer examples than workers, some are given twice, because no worker may have none.
        whole = batch if len(batch) >= num_workers else [*itertools.islice(itertools.cycle(batch), num_workers)]
        return samplers.part(whole, rank, num_workers)

    if type(inner) is data.BatchSampler:
        source, size = inner.sampler, inner.batch_size * num_workers
        is_distributed = type(source) is data.DistributedSampler
        is_random = isinstance(source, data.RandomSampler) and type(source).__module__.startswith(
            ("torch.", "accelerate.")
        )
        is_shuffled = source.shuffle if is_distributed else is_random
        is_whole = is_distributed or (len(source) == count and not getattr(source, "replacement", False))
        if is_whole and (is_distributed or is_random or type(source) is data.SequentialSampler):

            def ordered(epoch: int, first: int) -> Iterator[Any]:
                for ahead in range(first, len(found), _NUM_DRAWN_AHEAD):
                    start, stop = ahead * size, min((ahead + _NUM_DRAWN_AHEAD) * size, len(found) * size, count)
                    each: Any = range(start, stop)
                    if is_shuffled:
                        each = samplers.order(start, stop, seed, epoch, count).tolist()
                    yield from (share(each[place : place + size]) for place in range(0, stop - start, size))

            found = _Batches(position, lambda: count // size if inner.drop_last else -(-count // size), ordered)
            return found
        inner = data.BatchSampler(source, size, inner.drop_last)
    if num_workers > 1 and (source is inner or hasattr(source, "num_replicas")):
        raise InputError(
            f"{type(source).__name__} divides the batches between workers itself, so another number of workers would"
            " train with others; give a sampler of all examples, or one worker"
        )
    draws = _Draws(source)
    _refuse_hidden_state(source, draws)

    def drawn(epoch: int, first: int) -> Iterator[Any]:
        for each in (source, inner):
            if hasattr(each, "set_epoch"):
                each.set_epoch(epoch)
        items: Any = None
        for number in itertools.count():
            draws.begin(*(() if items else (seed, epoch, "order")))
            items = items or iter(inner)
            ahead = [*itertools.islice(items, _NUM_DRAWN_AHEAD)]
            draws.end(continues=True)
            yield from map(share, ahead[max(0, first - number * _NUM_DRAWN_AHEAD) :])
            if len(ahead) < _NUM_DRAWN_AHEAD:
                return

    return _Batches(position, lambda: len(inner), drawn)


def _refuse_hidden_state(source: Any, draws: _Draws) -> None:
    """Refuse a sampler whose order depends on how often it was iterated, unless its epoch can be set."""
    if hasattr(source, "set_epoch") or not hasattr(source, "__len__"):
        return

    def plain() -> dict[str, Any]:
        return {name: each for name, each in vars(source).items() if isinstance(each, int | float | str)}

    before = plain()
    draws.begin("once")
    for _ in itertools.islice(source, len(source) + 1):
        pass
    draws.end()
    if changed := [name for name, each in plain().items() if before.get(name, source) != each]:
        raise InputError(
            f"{type(source).__name__} changes its attribute {changed[0]!r} with each epoch, so the order of a resumed"
            " epoch is not known; give it set_epoch(epoch)"
        )


class _Examples:
    """A map-style dataset whose batches draw what their number says."""

    def __init__(self, dataset: Any, collate_fn: Callable[[Any], Any], seeds: tuple[int, int]) -> None:
        self.dataset, self._collate_fn, self._seeds = dataset, collate_fn, seeds
        self._draws, self._epoch = _Draws(dataset, collate_fn), -1
        self._get_worker_info = sys.modules["torch"].utils.data.get_worker_info

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dataset, name)

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        return self.dataset[index]

    def __getitems__(self, batch: _Batch) -> Any:
        seeds = (*self._seeds, batch.epoch, batch.number)
        if not self._get_worker_info():
            self._draws.begin(*seeds)
        else:
            if self._epoch != batch.epoch and hasattr(self.dataset, "set_epoch"):
                # A process that serves several epochs has a copy of the dataset.
                self.dataset.set_epoch(batch.epoch)
            self._epoch = batch.epoch
            self._draws.seed(*seeds)
        several, dataset = getattr(self.dataset, "__getitems__", None), self.dataset
        return several([*batch]) if several else [dataset[index] for index in batch]

    def collate(self, items: Any) -> Any:
        """Collate under the seed of the batch; restore the random generators of the training afterwards."""
        found = self._collate_fn(items)
        if not self._get_worker_info():
            self._draws.end()
        return found


def _iterable(loader: Any, position: Position, seed: int) -> Any:
    """Return an iterable dataset whose batches draw what their number says."""
    dataset, size = loader.dataset, loader.batch_size or 1
    draws = _Draws(dataset, loader.collate_fn)

    class Items(sys.modules["torch"].utils.data.IterableDataset):  # type: ignore[misc]
        def __getattr__(self, name: str) -> Any:
            return getattr(dataset, name)

        def __len__(self) -> int:
            return len(dataset)

        def set_epoch(self, epoch: int) -> None:
            position.epoch = epoch
            if hasattr(dataset, "set_epoch"):
                dataset.set_epoch(epoch)

        def __iter__(self) -> Iterator[Any]:
            epoch, first = position.take()
            items = None
            for number in itertools.count():
                self.seeds = (seed, epoch, number)
                draws.begin(*self.seeds)
                items = iter(dataset) if items is None else items
                found = [*itertools.islice(items, size)]
                draws.end()
                if number >= first:
                    yield from found
                if len(found) < size:
                    return

        def collate(self, items: Any) -> Any:
            draws.begin(*self.seeds, "collate")
            found = loader.collate_fn(items)
            draws.end()
            return found

    return Items()
