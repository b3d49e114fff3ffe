"""The folder of a run, as one of its processes uses it: whose it is, the lease, the event log and the watches."""

import contextlib
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from exact_resume.checkpoints import checkpoints, manifest, ownership
from exact_resume.checkpoints.async_writer import CheckpointWriter, NoCheckpoints
from exact_resume.checkpoints.checkpoints import Best, Checkpoint
from exact_resume.checkpoints.lease import Followed, Lease, NotHolder
from exact_resume.checkpoints.manifest import TornCheckpoint
from exact_resume.errors import InputError, RunError
from exact_resume.events.log import EventLog
from exact_resume.events.observers import Observer
from exact_resume.files import storage
from exact_resume.text import report
from exact_resume.workers import notices
from exact_resume.workers.deadline import Deadline
from exact_resume.workers.signals import StopRequest
from exact_resume.workers.watchdog import EXIT_LOST_PEER, Watchdog, leave_displaced

JOB_ID = "CLOUD_ML_JOB_ID"
"""The custom job's id, the same for all its machines and restarts (google-cloud-aiplatform, training_utils)."""


class RunFolder:
    """The checkpoint folder of a run. Of several workers, only the chief holds the lease and saves.

    Call `refuse_other_run` before anything that writes, then `take` and `open`, and `close` at the end.
    """

    def __init__(
        self,
        directory: str,
        identity: Mapping[str, Any],
        *,
        is_chief: bool,
        stop: StopRequest,
        report: Callable[[str], None],
        observer: Observer,
        defaults: Mapping[str, Any],
        way_on: str,
    ) -> None:
        """Prepare to use the folder; nothing is read or written.

        Args:
            directory: Local or gs://; need not exist.
            identity: Everything that decides what the run computes.
            is_chief: Whether this process writes checkpoints and the result.
            stop: Ends the wait for another job.
            report: Receives a line before and during that wait.
            observer: Receives every event, even before `open`.
            defaults: Values of fields that an identity leaves out.
            way_on: What to do where the folder has another run, at the end of the message.
        """
        self.directory, self.identity, self.is_chief = directory, dict(identity), is_chief
        self.run_id = manifest.run_id(identity)
        job, waiting = os.environ.get(JOB_ID, ""), Deadline(stop, math.inf, report)

        def pause(seconds: float) -> None:
            waiting.check([f"the checkpoint folder {directory!r}"])
            time.sleep(seconds)

        self.lease = Lease(directory, job, pause=pause, report=report)
        self._holder = self.lease if is_chief else Followed(directory, job)
        self._stop, self._defaults, self._way_on = stop, defaults, way_on
        self._watches, self._has_started = contextlib.ExitStack(), False
        self._observers = [observer]

    def refuse_other_run(self, found: Mapping[str, Any] | None = None) -> None:
        """Refuse a folder with another run.

        Args:
            found: Identity of a checkpoint there; None: of the run that the folder has, if any.

        Raises:
            InputError: A field differs.
        """
        if found := found or ownership.identity_in(self.directory):
            ownership.refuse_other_run(
                found, self.identity, self.directory, defaults=self._defaults, way_on=self._way_on
            )

    def watch(self) -> None:
        """Wait, as the chief, until no other job trains here, before anything is written or other workers come.

        Raises:
            NotHolder: Another job trains here.
            TimedOut: A stop was requested.
        """
        # The folder of another run is refused later, by all workers.
        if self.is_chief and ownership.identity_in(self.directory) in (None, self.identity):
            self.lease.watch()

    def take(self) -> None:
        """Make the folder, and take the lease and keep it, as the chief.

        Raises:
            NotHolder: Another job trains here.
            TimedOut: A stop was requested.
        """
        if self.is_chief:
            storage.make_directory(self.directory)
            self.lease.take(self.identity)
            self.lease.keep(leave_displaced)

    def open(self, replica: str, *, watchdog_seconds: float, observers: Sequence[Observer] = ()) -> None:
        """Open the event log, and watch for progress and for notices of preemption.

        Args:
            replica: Names the file of the log.
            watchdog_seconds: Longest time between two beats, see `Watchdog`.
            observers: Further ones.
        """
        log = EventLog(self.directory, replica, may_write=self._may_write)
        self._observers = [log.write, *observers, *self._observers]
        self.watchdog = Watchdog(watchdog_seconds, report=self._log_hang)
        self.watcher = notices.watch(os.environ)
        """The notices of preemption."""
        self._watches.callback(self.watcher.close)
        self._watches.callback(self.watchdog.close)

    def log_event(self, event: str, **fields: Any) -> None:
        """Take an event of docs/events.md; from `open` on, it is also written to the event log."""
        for observer in self._observers:
            observer(event, **fields)

    def log_start(self, **fields: Any) -> None:
        """Log the event `start`.

        Args:
            fields: Further ones than the id of the run and the process.
        """
        self._has_started = True
        self.log_event("start", run_id=self.run_id, pid=os.getpid(), **fields)

    def log_exit(self, code: int) -> None:
        """Log the event `exit`, unless the start was not logged: a mistake found before it leaves nothing behind."""
        if self._has_started:
            self.log_event("exit", code=code)

    def notice(self, message: str, **fields: str) -> None:
        """Log a message for the user, with fields for programs."""
        self.log_event("notice", message=message, **fields)

    def stopped_by(self, error: BaseException | None, at: str = "") -> bool:
        """Return whether a stop request explains an error, and log it then: the run ends as the stop does.

        A signal to all processes also ends those that load data, for example, which is an error in the next step. With
        exit code 1, the job would not be restarted.

        Args:
            error: What ended the run; None: nothing.
            at: Where it was, for the message.
        """
        is_own = isinstance(error, InputError | RunError)
        is_stop = self._stop.is_set and isinstance(error, Exception) and not is_own
        if is_stop:
            self.notice(
                f"{self._stop.signal_name}: stopped by an error{at} ({error!r}); the next start continues from the last"
                " save"
            )
        return is_stop

    def log_preemptions(self) -> bool:
        """Log the metadata server's notices since the last call; return whether there are any, so a save is due."""
        found = self.watcher.pending()
        for each in found:
            self.notice(
                f"notice from the metadata server: {each.kind} ({each.text}); saving a checkpoint and continuing",
                kind=each.kind,
            )
        return bool(found)

    def newest(self, value_of_chief: Callable[[int], int]) -> Checkpoint | None:
        """Return on all workers the newest intact checkpoint that the chief finds; None: the run begins.

        The chief decides for all, because a checkpoint may be damaged later, and logs which ones are skipped.

        Args:
            value_of_chief: Returns the chief's number on all workers, which call it together.

        Raises:
            InputError: Another run has started here, or this worker has another folder than the chief.
            OSError: A checkpoint cannot be read now; nothing was removed.
        """
        found = None
        if self.is_chief:
            self.refuse_other_run()
            # Before the selection, so that a former holder that wakes up can no longer commit a newer checkpoint.
            storage.remove_partial(self.directory)
            found, skipped = checkpoints.newest(self.directory)
            for line in skipped:
                self.notice(line)
        step = value_of_chief(found.step if found else 0)
        if step and not self.is_chief:
            try:
                found = checkpoints.load(self.directory, step)
            except TornCheckpoint as error:
                raise InputError(
                    f"the chief resumes from {manifest.name(step)} of {self.directory!r}, which this worker cannot read"
                    f" ({error}); give all workers one shared folder"
                ) from error
            self.refuse_other_run(found.identity)
        return found

    def writer(self, *, best: Best, saved_step: int, keep: int) -> CheckpointWriter:
        """Return the object that saves checkpoints; on workers other than the chief, it does nothing.

        Args:
            best: Best of the checkpoint that the run resumes from.
            saved_step: Step of that checkpoint; 0: none.
            keep: Number of newest checkpoints to keep.
        """
        kind = CheckpointWriter if self.is_chief else NoCheckpoints
        return kind(
            self.directory,
            self.lease,
            keep=keep,
            best=best,
            saved_step=saved_step,
            log_event=self.log_event,
            passed_over=[step for step in checkpoints.steps(self.directory) if step > saved_step],
        )

    def close(self) -> None:
        """End the watches and release the lease, so that any job can take the folder."""
        self._watches.close()
        if self.lease.is_taken:
            with contextlib.suppress(OSError):
                self.lease.release(has_checkpoint=bool(checkpoints.steps(self.directory)))

    def _log_hang(self, message: str) -> None:
        self.notice(message)
        self.log_exit(EXIT_LOST_PEER)

    def _may_write(self) -> bool:
        try:
            return self._holder.may_write()
        except NotHolder as error:
            leave_displaced(error)


def print_notice(event: str, **fields: Any) -> None:
    """Print the messages for the user: an observer."""
    if event == "notice":
        report(fields["message"])
