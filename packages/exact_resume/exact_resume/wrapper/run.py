"""The run of a wrapped command, from the lease on the checkpoint folder to result.json."""

import contextlib
import dataclasses
import os
import pathlib
import re
import signal
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any, NoReturn

from exact_resume.checkpoints import checkpoints, manifest, ownership, result_file
from exact_resume.checkpoints.lease import Lease
from exact_resume.events import log as event_log
from exact_resume.events.log import EventLog
from exact_resume.files import storage
from exact_resume.text import one_line
from exact_resume.workers import cluster, notices
from exact_resume.workers.signals import StopRequest
from exact_resume.workers.watchdog import leave_displaced
from exact_resume.wrapper import exit_codes, output
from exact_resume.wrapper.exit_codes import Translation
from exact_resume.wrapper.guard import Guard
from exact_resume.wrapper.output import Progress
from exact_resume.wrapper.snapshots import Snapshots
from exact_resume.wrapper.whole import Rule

_JOB_ID = "CLOUD_ML_JOB_ID"
_POLL_SECONDS = 0.2


@dataclasses.dataclass(kw_only=True)
class WrappedRun:
    """One start of the wrapper."""

    directory: str
    """Checkpoint folder, local or gs://."""
    watched: pathlib.Path
    """Folder in which the command writes its checkpoints."""
    rule: Rule
    keep: int
    pattern: re.Pattern[str] | None
    """Of a line with progress; None: the output is not read."""
    table: Mapping[int, Translation]
    error_file: pathlib.Path
    """Where torchrun writes its errors."""
    identity: dict[str, Any]
    """What decides what the command computes."""
    guard: Guard
    stop: StopRequest

    def __post_init__(self) -> None:
        replica = event_log.replica_name(os.environ, cluster.read(os.environ))
        self._is_primary = replica == event_log.PRIMARY
        self._lease = Lease(self.directory, os.environ.get(_JOB_ID, ""), report=_print)
        may_write = self._lease.may_write if self._is_primary else lambda: True
        self._events = EventLog(self.directory, replica, may_write=may_write)
        self._lock = threading.Lock()
        self._progress = Progress(pattern=self.pattern, log_event=self._log_event)

    def run(self) -> int:
        """Run the command from its newest checkpoint and return the exit code.

        Raises:
            InputError: A folder belongs to another run.
            RunError: Another process uses a folder.
            OSError: A folder cannot be read or written.
            KeyboardInterrupt: A second Ctrl-C; the command was killed.
        """
        try:
            with self.stop.immediate(self._leave):
                if self._is_finished():
                    return 0
                snapshots = self._prepare()
            return self._follow(snapshots)
        finally:
            # No command runs without the lease.
            self.guard.close()
            with contextlib.suppress(OSError):
                self._lease.release(has_checkpoint=bool(checkpoints.steps(self.directory)))

    def _is_finished(self) -> bool:
        """Refuse the folder of another run; return whether this one is finished."""
        result = result_file.read_result(self.directory)
        if found := (result or {}).get("identity") or ownership.identity_in(self.directory):
            ownership.refuse_other_run(found, self.identity, self.directory, defaults={})
        if is_finished := result_file.is_finished(self.directory):
            _print(f"run {manifest.run_id(self.identity)} is finished; the command is not started")
        return is_finished

    def _prepare(self) -> Snapshots:
        """Take the lease, claim the command's folder, and restore the newest checkpoint into it."""
        started = time.monotonic()
        if self._is_primary:
            self._lease.take(self.identity)
            self._lease.keep(leave_displaced)
            storage.remove_partial(self.directory)
        self._log_event("start", run_id=manifest.run_id(self.identity), pid=os.getpid(), exact=False)
        snapshots = Snapshots(
            self.directory,
            self.watched,
            self.rule,
            identity=self.identity,
            keep=self.keep,
            lease=self._lease,
            log_event=self._log_event,
        )
        if (figures := snapshots.restore()) is not None:
            self._progress.resume(figures)
            step = self._progress.step or snapshots.number
            self._log_event("restore", step=step, seconds=time.monotonic() - started)
        return snapshots

    def _follow(self, snapshots: Snapshots) -> int:
        """Run the command, commit its checkpoints, and return the exit code."""
        outputs = [output.pipe_to(target, self._progress.lines) for target in (1, 2)] if self.pattern else []
        started = time.time()
        self.guard.start(snapshots.lock, [descriptor for descriptor, _ in outputs])
        for descriptor, thread in outputs:
            os.close(descriptor)
            thread.start()
        closed = threading.Event()
        threading.Thread(target=self._listen, args=(closed,), name="preemption", daemon=True).start()
        stop_signal, error = 0, None
        with self.stop.immediate(lambda: self.guard.send(self.stop.signal_number)):
            while True:
                code = self.guard.wait(_POLL_SECONDS)
                if self.stop.is_set and not stop_signal:
                    stop_signal = self.stop.signal_number
                    self._notice(f"{self.stop.signal_name} was passed on to the command")
                if code is not None:
                    break
                self._progress.update()
                if self._is_primary:
                    snapshots.poll(self._progress.figures)
            closed.set()
            for _, thread in outputs:
                thread.join()
            self._progress.update(is_last=True)
            if self._is_primary:
                error = snapshots.finish(self._progress.figures, was_killed=code < 0)
        message = exit_codes.read_error(self.error_file, since=started)
        translated, reason = exit_codes.translate(code, self.table, stop_signal=stop_signal, error=message)
        if translated == 0 and self._is_primary:
            try:
                if error:
                    raise error
                self._write_result(snapshots.number)
            except OSError as failure:
                translated, reason = 1, f"its end could not be committed: {failure}"
        elif error:
            self._notice(f"the last checkpoint could not be committed: {error}")
        if reason:
            self._notice(f"the command ended with {code}, and the exit code is {translated}: {reason}")
        self._log_event("exit", code=translated)
        return translated

    def _listen(self, closed: threading.Event) -> None:
        """Turn a preemption into SIGTERM, also while the main thread commits a checkpoint."""
        watcher = notices.watch(os.environ)
        while not closed.wait(_POLL_SECONDS):
            for notice in watcher.pending():
                if notice.kind == "preempted":
                    os.kill(os.getpid(), signal.SIGTERM)
                self._notice(f"the metadata server announced {notice.kind}: {notice.text}")
        watcher.close()

    def _write_result(self, number: int) -> None:
        """Mark the run as finished, if a restart could find its last checkpoint.

        `best_step` counts the checkpoints, and `metrics` are the figures of the log's last line with progress.
        """
        if not number:
            self._notice(
                "the command ended with 0 and has no whole checkpoint, so there is no result.json and a restart runs it"
                " again; compare --watch and --whole with what it writes"
            )
            return
        result_file.write(
            self.directory,
            run_id=manifest.run_id(self.identity),
            identity=self.identity,
            final_step=self._progress.step or None,
            stop_reason="the command ended with 0",
            best_step=number,
            fence=self._lease.fence,
            examples="unknown",
            metrics=self._progress.figures,
        )

    def _log_event(self, event: str, **fields: Any) -> None:
        if event == "notice":
            _print(fields["message"])
        with self._lock:
            self._events.write(event, **fields)

    def _notice(self, message: str) -> None:
        self._log_event("notice", message=message)

    def _leave(self) -> NoReturn:
        _print(f"{self.stop.signal_name}: stopped before the command was started")
        raise SystemExit(self.stop.exit_code)


def _print(message: str) -> None:
    # Its reader may have ended.
    with contextlib.suppress(OSError):
        print(one_line(f"exact_resume: {message}"), file=sys.stderr, flush=True)
