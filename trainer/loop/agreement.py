"""What the workers agree on between two graph calls: whether to stop, whether to save, how many steps come next."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence

from trainer.cluster.signals import StopRequest
from trainer.cluster.watchdog import Watchdog
from trainer.files.observers import Observer
from trainer.loop.pace import Pace


@dataclasses.dataclass(frozen=True, kw_only=True)
class Agreed:
    """The same on every worker."""

    stop: bool
    """Some worker was asked to stop."""
    save: bool
    """Some worker's machine may go away soon, or the chief's time for a save has come."""
    num_steps: int
    """Most steps for the next graph call, from the chief's measurements."""


class Agreement:
    """Asks the outside (signals, the metadata server, the chief's clock) and brings the workers' answers together.

    Every worker has to come here at the same places, because it waits for the others.
    """

    def __init__(
        self, add_up: Callable[[Sequence[float]], list[float]], *, is_chief: bool, stop: StopRequest,
        notices: Callable[[], Sequence[str]], watchdog: Watchdog, observe: Observer,
    ) -> None:  # fmt: skip
        """As given.

        Args:
            add_up: `trainer.learner.learner.Learner.add_up`.
            is_chief: whether this worker's measurements count.
            stop: set by a signal.
            notices: what the metadata server has said since it was asked last.
            watchdog: is told of the progress.
            observe: is told the notices.
        """
        self._add_up, self._is_chief, self._stop = add_up, is_chief, stop
        self._notices, self._watchdog, self._observe = notices, watchdog, observe
        self._owes_save = False

    def reach(self, pace: Pace, *, save_is_due: bool = False) -> Agreed:
        """Agree with the other workers.

        Args:
            pace: knows how long a step takes; the chief's counts.
            save_is_due: whether the time for a save has come; the chief's counts.
        """
        notices = self._notices()
        for text in notices:
            self._observe("notice", message=text)
        # Until it is done: a notice may come before the first step, or while a validation is going on.
        self._owes_save = self._owes_save or bool(notices)
        wants_save = self._owes_save or (self._is_chief and save_is_due)
        steps = float(pace.num_steps) if self._is_chief else 0.0
        stop, save, num_steps = self._add_up([float(self._stop.is_set), float(wants_save), steps])
        self._watchdog.beat()
        return Agreed(stop=stop > 0, save=save > 0, num_steps=max(1, round(num_steps)))

    def saved(self) -> None:
        """What the notices asked for has been done."""
        self._owes_save = False

    @property
    def reason_to_stop(self) -> str:
        """Who asked for the stop."""
        return self._stop.signal_name if self._stop.is_set else "another worker was asked to stop"

    def of_chief(self, value: int) -> int:
        """The chief's value, on every worker."""
        return round(self._add_up([float(value) if self._is_chief else 0.0])[0])

    def meet(self) -> None:
        """Wait until every worker is here."""
        self._add_up([0.0])


class Rounds:
    """Paces an evaluation: bounded graph calls, and a stop between them."""

    def __init__(self, agreement: Agreement) -> None:
        self._agreement, self._pace = agreement, Pace()
        self._asked, self._started = 0, time.monotonic()

    def __call__(self, left: int) -> int:
        """Rounds for the next call; 0 if a stop was asked for."""
        if self._asked:
            self._pace.record(self._asked, time.monotonic() - self._started)
        agreed = self._agreement.reach(self._pace)
        self._asked, self._started = min(left, agreed.num_steps), time.monotonic()
        return 0 if agreed.stop else self._asked
