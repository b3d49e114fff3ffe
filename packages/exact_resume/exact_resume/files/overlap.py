"""Calls that overlap, for work that waits for a bucket or a disk, or releases the interpreter's lock."""

import collections
import itertools
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
_NUM_AHEAD = 16
"""Number of items read ahead; they are small in memory."""


def in_order(
    call: Callable[[T], R], items: Iterable[T], *, num_threads: int, num_ahead: int = _NUM_AHEAD
) -> Iterator[R]:
    """Yield the result for each item, in the order of the items.

    All threads are busy while the caller takes results: a slow item delays no other. An exception is raised at its
    place, and the rest is abandoned. The threads are daemons, so that a process that stops waits for no request.

    Args:
        call: Is called with one item; for an item whose failure must not stop the rest, it returns the failure.
        items: Are taken a little ahead of the results.
        num_threads: Number of calls at a time.
        num_ahead: Items per thread that are started before the oldest result is taken, which bounds memory and disk.
    """
    tasks: queue.SimpleQueue[tuple[Future[R], T] | None] = queue.SimpleQueue()
    remaining, waiting, num_started = iter(items), collections.deque[Future[R]](), 0
    try:
        while True:
            for item in itertools.islice(remaining, num_ahead * num_threads - len(waiting)):
                waiting.append(Future())
                tasks.put((waiting[-1], item))
                if num_started < num_threads:
                    num_started += 1
                    threading.Thread(target=_work, args=(call, tasks), name="overlap", daemon=True).start()
            if not waiting:
                return
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
        for _ in range(num_started):
            tasks.put(None)


def in_groups(
    call: Callable[[T], R], items: Iterable[T], *, group_size: int, num_threads: int
) -> Iterator[tuple[T, R]]:
    """Yield each item with its result, as `in_order`; a thread takes several at a time, where a call is short."""
    groups = batched(items, group_size)
    return itertools.chain.from_iterable(
        in_order(lambda group: [(item, call(item)) for item in group], groups, num_threads=num_threads)
    )


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield lists of `size` items, which are taken when they are asked for; the last one may be shorter."""
    remaining = iter(items)
    return iter(lambda: list(itertools.islice(remaining, size)), [])


def _work(call: Callable[[T], R], tasks: "queue.SimpleQueue[tuple[Future[R], T] | None]") -> None:
    while task := tasks.get():
        future, item = task
        if not future.set_running_or_notify_cancel():
            continue
        try:
            future.set_result(call(item))
        except BaseException as error:
            future.set_exception(error)
