"""Worker synchronisation between graph calls: whether to stop, whether to save, and how many steps come next."""

import dataclasses
import time
from collections.abc import Callable, Sequence

from exact_resume.workers.signals import StopRequest
from exact_resume.workers.team import Pace
from exact_resume.workers.watchdog import Watchdog


@dataclasses.dataclass(frozen=True, kw_only=True)
class Decision:
    """The next action of all workers; the same on each of them."""

    stop: bool
    """A worker was asked to stop."""
    ends_early: bool
    """The run ends here, by the chief's validation history."""
    save: bool
    """A worker's machine may be preempted soon, or a save is due by the chief's clock."""
    num_steps: int
    """Most steps for the next graph call, from the chief's measurements."""


class WorkerSync:
    """Brings the workers' stop requests, notices and measurements together in one exchange.

    All workers must make the same calls in the same order, because each call waits for the others.
    """

    def __init__(
        self,
        add_up: Callable[[Sequence[float]], list[float]],
        *,
        is_chief: bool,
        stop: StopRequest,
        log_preemptions: Callable[[], bool],
        watchdog: Watchdog,
    ) -> None:
        """Connect this worker.

        Args:
            add_up: Sums values over the workers: `trainer.learner.learner.Learner.add_up`.
            is_chief: Whether this worker's measurements decide.
            stop: Stop request of this process.
            log_preemptions: `exact_resume.run_folder.RunFolder.log_preemptions`.
            watchdog: Gets a beat at each exchange.
        """
        self._add_up, self._is_chief, self._stop = add_up, is_chief, stop
        self._log_preemptions, self._watchdog = log_preemptions, watchdog
        self._owes_save = False

    def decide(self, pace: Pace, *, save_is_due: bool = False, ends_early: bool = False) -> Decision:
        """Decide with the other workers what comes next.

        Args:
            pace: Number of steps that fit into a call; the chief's counts.
            save_is_due: Whether a save is due; the chief's counts.
            ends_early: Whether the run ends before its last step; the chief's counts.
        """
        # Kept until the save: a notice may come before the first step, or during a validation.
        self._owes_save = self._log_preemptions() or self._owes_save
        wants_save = self._owes_save or (self._is_chief and save_is_due)
        steps = float(pace.num_steps) if self._is_chief else 0.0
        ends = float(self._is_chief and ends_early)
        stop, save, num_steps, complete = self._add_up([float(self._stop.is_set), float(wants_save), steps, ends])
        self._watchdog.beat()
        return Decision(stop=stop > 0, save=save > 0, num_steps=max(1, round(num_steps)), ends_early=complete > 0)

    def note_save(self) -> None:
        """Note that the save requested by the notices has been made."""
        self._owes_save = False

    @property
    def reason_to_stop(self) -> str:
        """The signal, or that another worker got one."""
        return self._stop.signal_name if self._stop.is_set else "another worker was asked to stop"

    def value_of_chief(self, value: int) -> int:
        """Return the chief's value on every worker, once all have called this."""
        return round(self._add_up([float(value) if self._is_chief else 0.0])[0])


class EvaluationRounds:
    """Splits an evaluation into bounded graph calls, with a chance to stop between them."""

    def __init__(self, sync: WorkerSync) -> None:
        self._sync, self._pace = sync, Pace()
        self._last, self._started = 0, time.monotonic()

    def __call__(self, left: int) -> int:
        """Return the number of rounds for the next call; 0 if a stop was requested."""
        if self._last:
            self._pace.record(self._last, time.monotonic() - self._started)
        decision = self._sync.decide(self._pace)
        self._last, self._started = min(left, decision.num_steps), time.monotonic()
        return 0 if decision.stop else self._last
