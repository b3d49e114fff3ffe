"""Changes of the list of runs: the client reads its page of the list again."""

import time
from collections.abc import Iterator

from localvertex.console.events.stream import Event
from localvertex.console.runs.listing import RunList

_PAUSE = 20
"""Pause per processor time of a poll: thousands of runs are polled less often."""


class ListChanges:
    """`runs` at the beginning, and whenever a run, a custom job or a schedule has changed, arrived or was deleted.

    It has the `version` of the list of runs: a client that has read the same one need not read again.
    """

    def __init__(self, runs: RunList) -> None:
        self._runs = runs
        self._seen: object = None
        self._next = 0.0

    def __call__(self) -> Iterator[Event]:
        """Return an event if something has changed since the last one."""
        if time.monotonic() < self._next:
            return
        # The time of this thread alone: a busy machine does not delay the next look.
        begun = time.thread_time()
        others, version = self._runs.others(), self._runs.rows()[0]
        if (others, version) != self._seen:
            # Later changes are seen by the client, which reads after this event, or by the next poll.
            self._seen = others, version
            yield "runs", {"version": version}
        self._next = time.monotonic() + _PAUSE * (time.thread_time() - begun)
