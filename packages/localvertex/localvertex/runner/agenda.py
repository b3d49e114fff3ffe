"""The agenda of the scheduler: which tasks it has to look at next, so that its work does not grow with the run."""

import time
from collections import defaultdict
from heapq import heappop, heappush
from itertools import count

from localvertex.store.task import State, Task

_Heap = list[tuple[tuple[int, ...], int, Task]]
"""Tasks by position in the tree; the number makes entries of the same task comparable."""


class Agenda:
    """The tasks that may have to be started or closed, in the order of the tree. Used by one thread."""

    def __init__(self) -> None:
        self._number = count()
        self._closable: list[Task] = []
        self._candidates: _Heap = []
        self._ready: _Heap = []
        """Steps that only wait for one of the `max_parallel` slots."""
        self._retries: list[tuple[float, int, Task]] = []
        self._parked: dict[Task, _Heap] = defaultdict(list)
        """Loop -> iterations that wait until fewer of the loop's iterations run."""
        self._running: dict[Task, set[Task]] = defaultdict(set)
        """Loop with a limit -> the iterations that run."""
        self._num_open: dict[Task, int] = {}
        """Open dag or loop -> number of its tasks that are not final."""
        self._num_awaited: dict[Task, int] = {}
        """Pending task -> number of upstream tasks that are not final."""
        self._downstream: dict[Task, list[Task]] = defaultdict(list)

    def add_opened(self, parent: Task) -> None:
        """Add the tasks of a dag or loop that has been opened."""
        self._num_open[parent] = len(parent.children)
        if not parent.children:
            self._closable.append(parent)
        for index, child in enumerate(parent.children.values()):
            child.position = (*parent.position, index)
            upstream = child.upstream
            for each in upstream:
                self._downstream[each].append(child)
            self._num_awaited[child] = len(upstream)
            if not upstream:
                self.consider(child)

    def add_unblocked(self, task: Task) -> None:
        """Add the tasks that may start or close now that a task is final."""
        for each in self._downstream.pop(task, ()):
            if each not in self._num_awaited:
                # A run that is stopped ends pending tasks before those that run.
                continue
            self._num_awaited[each] -= 1
            if not self._num_awaited[each]:
                self.consider(each)
        self._num_awaited.pop(task, None)
        if task.parent is None:
            return
        self._num_open[task.parent] -= 1
        if not self._num_open[task.parent]:
            self._closable.append(task.parent)
        self._running.get(task.parent, set()).discard(task)
        if parked := self._parked.get(task.parent):
            self.consider(heappop(parked)[2])

    def consider(self, task: Task) -> None:
        """Add a pending task whose upstream tasks are final, or any pending task when the run is stopped."""
        self._push(self._candidates, task)

    def wait_for_slot(self, task: Task) -> None:
        """Add a step that can be started as soon as fewer steps run."""
        self._push(self._ready, task)

    def wait_for_retry(self, task: Task) -> None:
        """Add a step whose next attempt has a time."""
        heappush(self._retries, (task.retry_at or 0.0, next(self._number), task))

    def takes_room(self, iteration: Task) -> bool:
        """Return whether an iteration of a loop may start; keep one that may not until another has ended."""
        loop = iteration.parent
        limit = loop.spec.iterator.max_parallel if loop and loop.spec.iterator else 0
        if loop is None or not limit:
            return True
        if len(self._running[loop]) >= limit:
            self._push(self._parked[loop], iteration)
            return False
        self._running[loop].add(iteration)
        return True

    def reconsider_all(self) -> None:
        """Consider every task again that could have been started."""
        for heap in (self._ready, *self._parked.values()):
            for *_, task in heap:
                self.consider(task)
            heap.clear()

    def next_closable(self) -> Task | None:
        """Return and remove a dag or loop whose tasks are all final, None when there is none."""
        return self._closable.pop() if self._closable else None

    def next_candidate(self) -> Task | None:
        """Return and remove the first task to look at, None when there is none."""
        now = time.monotonic()
        while self._retries and self._retries[0][0] <= now:
            self.consider(heappop(self._retries)[2])
        return _pop(self._candidates)

    def next_ready(self) -> Task | None:
        """Return and remove the first step that waits for a slot, None when there is none."""
        return _pop(self._ready)

    def seconds_to_next_retry(self) -> float | None:
        """Return the seconds until the next retry is due, None when no retry is pending."""
        return max(0.0, self._retries[0][0] - time.monotonic()) if self._retries else None

    def _push(self, heap: _Heap, task: Task) -> None:
        heappush(heap, (task.position, next(self._number), task))


def _pop(heap: _Heap) -> Task | None:
    """Return and remove the first pending task: a task may be in several heaps."""
    while heap:
        task = heappop(heap)[2]
        if task.state is State.PENDING:
            return task
    return None
