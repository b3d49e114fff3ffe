"""Changes of the list of runs: the client reads its page of the list again."""

import time
from collections.abc import Iterator

from localvertex.console.events.stream import Event
from localvertex.console.runs.listing import RunList

_PAUSE = 20
"""Pause per processor time of a poll: thousands of runs are polled less often."""


class ListChanges:
    """`runs` at the beginning, and whenever a run or a custom job has changed, arrived or was deleted."""

    def __init__(self, runs: RunList) -> None:
        self._runs = runs
        self._seen: object = None
        self._unfinished: set[str] = set()
        self._next = 0.0

    def __call__(self) -> Iterator[Event]:
        """Return an event if something has changed since the last one."""
        if time.monotonic() < self._next:
            return
        # The time of this thread alone: a busy machine does not delay the next look.
        begun = time.thread_time()
        files = self._runs.files()
        if (files, self._runs.live(self._unfinished)) != self._seen:
            is_first = self._seen is None
            # A run that begins while the rows are read is not among them: the next look finds other files than these.
            self._unfinished = self._runs.unfinished_runs()
            # Later changes are seen by the client, which reads after this event, or by the next poll.
            self._seen = files, self._runs.live(self._unfinished)
            yield "runs", {"is_first": is_first}
        self._next = time.monotonic() + _PAUSE * (time.thread_time() - begun)
