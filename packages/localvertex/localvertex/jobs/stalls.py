"""Notices that a job makes no progress, and why: from the event logs of its replicas and from their processes."""

import math
import time
from collections.abc import Sequence

from localvertex._base.userinput.spelling import join_or
from localvertex.jobs.goodput.event_files import EventFiles
from localvertex.jobs.replica_process import ReplicaProcess

_FROZEN_SECONDS = 120.0
"""Time without an event after which a job with a frozen replica is stalled."""

_SECONDS = 600.0
"""The same if none is frozen, or the system does not show it: an evaluation writes no event until its end."""

_CHECK_SECONDS = 5.0

_MAX_NAMES = 3


class StallWatch:
    """Follows one job; a start or end of a process counts as progress, and so does each event."""

    def __init__(self, replicas: Sequence[ReplicaProcess], events: EventFiles) -> None:
        self._replicas, self._events = replicas, events
        self._latest: object = None
        self._since = self._next_check = 0.0
        self._frozen_since = math.inf
        self.sentence = ""
        """Why the job makes no progress; empty while it does."""

    def check(self) -> None:
        """Look at the events, and every few seconds at the processes."""
        now = time.monotonic()
        latest = [(each.num_starts, each.is_running, *self._events.of(each.name)[-1:]) for each in self._replicas]
        if latest != self._latest:
            self._latest, self._since, self.sentence = latest, now, ""
        if now >= self._next_check:
            self._next_check = now + _CHECK_SECONDS
            self.sentence = self._sentence(now)

    def _sentence(self, now: float) -> str:
        running = [each for each in self._replicas if each.is_running]
        frozen = [each.name for each in running if each.is_frozen()]
        self._frozen_since = min(self._frozen_since, now) if frozen else math.inf
        has_trained = any(self._events.progress(each.name).step for each in self._replicas)
        # A program that logs no steps may wait for whatever it wants, so only the time for which it is frozen counts.
        seconds = now - (self._since if has_trained else max(self._since, self._frozen_since))
        # A stall lasts until there is progress, even if a replica wakes up now and then.
        if seconds < (_FROZEN_SECONDS if frozen or self.sentence else _SECONDS):
            return ""
        ended = [each.name for each in self._replicas if not each.is_running]
        others = [each.name for each in running if each.name not in frozen] if frozen else []
        whom = "it" if len(frozen) == 1 else "them"
        parts = [
            _phrase(frozen, "is frozen", "are frozen"),
            _phrase(others, f"waits for {whom}", f"wait for {whom}"),
            _phrase(ended, "has ended", "have ended"),
        ]
        reasons = "; ".join(filter(None, parts))
        return f"no step for {seconds // 60:.0f} min{f': {reasons}' if reasons else ''}"


def _phrase(names: list[str], one: str, several: str) -> str:
    """Return names and verb, `a and b wait`; empty without a name."""
    if not names:
        return ""
    more = [f"{len(names) - _MAX_NAMES} others"] if len(names) > _MAX_NAMES else []
    return f"{join_or([*names[:_MAX_NAMES], *more], 'and')} {one if len(names) == 1 else several}"
