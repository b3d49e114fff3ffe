"""Checkpoints are written while training goes on: one at a time, by a thread of the chief's."""

from __future__ import annotations

import threading
import time

from trainer.checkpoints import checkpoints
from trainer.checkpoints.checkpoints import Best, Checkpoint
from trainer.checkpoints.lease import Owner
from trainer.files.observers import Observer


class NoCheckpoints:
    """Writes nothing: what a worker has that is not the chief."""

    def __init__(self, *, best: Best, saved_step: int) -> None:
        self.best = best
        """Best of the newest checkpoint that is committed: what a restart would know."""
        self.saved_step = saved_step
        """Step of that checkpoint; 0: there is none."""
        self.save_seconds: float | None = None
        """For how long training stood still in the last save; None: there was none."""

    @property
    def is_busy(self) -> bool:
        """Whether a checkpoint is being written."""
        return False

    def write(self, checkpoint: Checkpoint, *, stood_still_seconds: float) -> None:
        """Nothing."""

    def settle(self, *, wait: bool) -> OSError | None:
        """Nothing."""
        return None


class CheckpointWriter(NoCheckpoints):
    """Writes checkpoints in the background, removes old ones, and tells of each when it is committed."""

    def __init__(
        self, directory: str, owner: Owner, *, keep: int, best: Best, saved_step: int, observe: Observer
    ) -> None:
        super().__init__(best=best, saved_step=saved_step)
        self._owner = owner
        self._directory, self._keep, self._observe = directory, keep, observe
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._note = ""
        self._write_seconds = 0.0

    @property
    def is_busy(self) -> bool:
        """Whether a checkpoint is being written."""
        return self._thread is not None and self._thread.is_alive()

    def write(self, checkpoint: Checkpoint, *, stood_still_seconds: float) -> None:
        """Begin to write; `settle` has to come before, because there are never two in flight.

        Args:
            checkpoint: its arrays must be copies, training goes on.
            stood_still_seconds: how long it took to wait for the one before and to copy.
        """
        self._pending, self.save_seconds = checkpoint, stood_still_seconds
        self._thread = threading.Thread(target=self._write, name="checkpoint-writer")
        self._thread.start()

    def settle(self, *, wait: bool) -> OSError | None:
        """Tell how the last write ended, if it has or if we are to wait for it; its error, if it failed."""
        if self._thread is None or (self.is_busy and not wait):
            return None
        self._thread.join()
        self._thread, error = None, self._error
        if error is not None and not isinstance(error, OSError):
            raise error
        if self._note:
            self._observe("notice", message=self._note)
        if error is None:
            self.best, self.saved_step = self._pending.best, self._pending.step
            num_bytes = sum(array.nbytes for array in self._pending.arrays)
            self._observe(
                "save", step=self.saved_step, seconds=self.save_seconds, write_seconds=self._write_seconds,
                num_bytes=num_bytes,
            )  # fmt: skip
            return None
        self._observe(
            "notice",
            message=f"the checkpoint of step {self._pending.step} could not be saved ({error}); the last one is of step"
            f" {self.saved_step}",
        )
        return error

    def _write(self) -> None:
        started, self._error, self._note = time.monotonic(), None, ""
        try:
            self._owner.check()
            checkpoints.save(self._directory, self._pending)
            self._prune()
        except BaseException as error:
            self._error = error
        self._write_seconds = time.monotonic() - started

    def _prune(self) -> None:
        self._owner.check()
        try:
            checkpoints.prune(self._directory, keep=self._keep, best_step=self._pending.best.step)
        except OSError as error:
            # The checkpoint itself is committed; another process may just be reading an old one.
            self._note = f"old checkpoints could not be removed ({error}); going on"
