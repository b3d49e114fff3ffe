"""Writes checkpoints while training continues: one at a time, in a thread of the chief, at the best interval."""

import errno
import math
import threading
import time
from collections.abc import Iterable

from exact_resume.checkpoints import checkpoints, manifest
from exact_resume.checkpoints.checkpoints import Best, Checkpoint
from exact_resume.checkpoints.lease import Lease
from exact_resume.errors import RunError
from exact_resume.events.observers import Observer

SECONDS_BETWEEN_FAILURES = 2 * 3600.0
"""Mean time between failures of a Spot machine, assumed unless the user gives an interval."""
_SHORTEST_INTERVAL_SECONDS = 10.0
_FIRST_INTERVAL_SECONDS = 30.0
"""Interval until a save has been measured."""
_EARLIEST_SECONDS, _EARLIEST_SHARE = 2.0, 10
"""The first save comes after 2 seconds, or 10 times the duration of a copy of the state if that is longer."""
_LARGEST_SHARE = 100
"""A save pauses the loop for at most 1/100 of the time between two saves."""


def best_interval(pause_seconds: float | None) -> float:
    """Return the seconds between two saves: sqrt(2 C M), Young's formula (doi:10.1145/361147.361115), at least 100 C.

    M is `SECONDS_BETWEEN_FAILURES`.

    Args:
        pause_seconds: C, how long a save pauses training; None: not measured yet.
    """
    if pause_seconds is None:
        return _FIRST_INTERVAL_SECONDS
    young = math.sqrt(2 * pause_seconds * SECONDS_BETWEEN_FAILURES)
    return max(_SHORTEST_INTERVAL_SECONDS, _LARGEST_SHARE * pause_seconds, young)


class CheckpointWriter:
    """Writes checkpoints in the background, removes old ones, and logs each when it is committed."""

    def __init__(
        self,
        directory: str,
        lease: Lease,
        *,
        keep: int,
        best: Best,
        saved_step: int,
        log_event: Observer,
        passed_over: Iterable[int] = (),
    ) -> None:
        """Write into a folder.

        Args:
            directory: Checkpoint folder.
            lease: The right to write there.
            keep: Number of newest checkpoints to keep.
            best: Best of the checkpoint that the run resumed from.
            saved_step: Step of that checkpoint; 0: none.
            log_event: Receives every save and failure.
            passed_over: Steps of newer checkpoints that are damaged; they are removed after the first save.
        """
        self.best, self.saved_step = best, saved_step
        """Best step and step of the newest committed checkpoint, which a restart would know; step 0: none."""
        self.pause_seconds: float | None = None
        """How long the last save paused training; None: nothing was saved yet."""
        self.copy_seconds = math.inf
        """How long a copy of the state takes, as measured before the first save; inf: not measured."""
        self._lease = lease
        self._directory, self._keep, self._log_event = directory, keep, log_event
        self._passed_over = set(passed_over)
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._notice = self._noticed = ""
        self._write_seconds = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether a checkpoint is being written."""
        return self._thread is not None and self._thread.is_alive()

    def write(self, checkpoint: Checkpoint, *, pause_seconds: float) -> None:
        """Start writing in a thread; call `settle` first, because only one checkpoint is written at a time.

        Args:
            checkpoint: Its arrays must be copies, because training continues.
            pause_seconds: How long it took to wait for the previous checkpoint and to copy.
        """
        self._pending, self.pause_seconds = checkpoint, pause_seconds
        self._thread = threading.Thread(target=self._write, name="checkpoint-writer")
        self._thread.start()

    def settle(self, *, wait: bool) -> OSError | None:
        """Log how the last write ended, if it has ended or if `wait` is set; return its error if it failed."""
        if self._thread is None or (self.is_busy and not wait):
            return None
        self._thread.join()
        self._thread, error = None, self._error
        if error is not None and not isinstance(error, OSError):
            raise error
        # What cannot be removed is tried again at each save.
        if self._notice and self._notice != self._noticed:
            self._log_event("notice", message=self._notice)
            self._noticed = self._notice
        if error is None:
            self.best, self.saved_step = self._pending.best, self._pending.step
            num_bytes = sum(array.nbytes for array in self._pending.arrays)
            self._log_event(
                "save",
                step=self.saved_step,
                seconds=self.pause_seconds,
                write_seconds=self._write_seconds,
                num_bytes=num_bytes,
            )
            return None
        is_best = self._pending.best.step == self._pending.step
        lost = "; it is the best so far" if is_best else ""
        self._log_event(
            "notice",
            message=f"the checkpoint of step {self._pending.step} could not be saved ({error}); the last one is from"
            f" step {self.saved_step}{lost}",
        )
        return error

    def _write(self) -> None:
        started, self._error, self._notice = time.monotonic(), None, ""
        try:
            self._lease.check()
            # It may be intact but from before the run resumed from an older one; `save` would then keep its variables.
            checkpoints.remove(self._directory, self._passed_over & {self._pending.step})
            checkpoints.save(self._directory, self._pending, self._lease.fence)
            self._prune()
        except BaseException as error:
            self._error = error
        self._write_seconds = time.monotonic() - started

    def is_time(self, since: float, every_seconds: float | None) -> bool:
        """Return whether the time for the next save has come, and the previous one is written.

        Args:
            since: Time of `time.monotonic` at the last save.
            every_seconds: 0: never; None: what `best_interval` returns.
        """
        interval = best_interval(self.pause_seconds) if every_seconds is None else every_seconds or math.inf
        if self.pause_seconds is None and every_seconds is None:
            interval = min(interval, max(_EARLIEST_SECONDS, _EARLIEST_SHARE * self.copy_seconds))
        return not self.is_busy and time.monotonic() - since >= interval

    def finish(self) -> None:
        """Wait for the last write; on a full disk, trade older checkpoints for room before it gives up.

        Raises:
            RunError: The last checkpoint cannot be saved.
        """
        while (error := self.settle(wait=True)) and error.errno in (errno.ENOSPC, errno.EDQUOT) and self._make_room():
            self.write(self._pending, pause_seconds=self.pause_seconds or 0.0)
        if error:
            raise RunError(
                f"the checkpoint of step {self._pending.step} could not be saved ({error}); free some space and run"
                f" again to resume from step {self.saved_step}"
            ) from error

    def _make_room(self) -> bool:
        """Remove a damaged checkpoint, or the oldest; never the newest intact one, nor the best. Return if one was."""
        self._lease.check()
        found = checkpoints.steps(self._directory)
        damaged = [step for step in found if step in self._passed_over]
        intact = [step for step in found if step not in self._passed_over]
        needed = checkpoints.needed_steps(self._directory, intact, self._pending.best.step)
        spared = {self.saved_step, self.best.step, self._pending.step, *needed}
        candidates = [step for step in (*damaged, *reversed(found)) if step not in spared]
        if not candidates:
            return False
        checkpoints.remove(self._directory, candidates[:1])
        self._log_event("notice", message=f"the disk is full: {manifest.name(candidates[0])} was removed for room")
        return True

    def close(self) -> None:
        """Wait for a checkpoint that is being written, because the lease is released afterwards."""
        if self._thread is not None:
            self._thread.join()

    def _prune(self) -> None:
        self._lease.check()
        try:
            checkpoints.remove(self._directory, self._passed_over - {self._pending.step})
            self._passed_over.clear()
            checkpoints.prune(self._directory, keep=self._keep, best_step=self._pending.best.step)
        except OSError as error:
            # The checkpoint itself is committed; another process may be reading an old one.
            self._notice = f"old checkpoints could not be removed ({error}); training continues"


class NoCheckpoints(CheckpointWriter):
    """Saves nothing, on workers that are not the chief."""

    def write(self, checkpoint: Checkpoint, *, pause_seconds: float) -> None:
        """Do nothing."""
