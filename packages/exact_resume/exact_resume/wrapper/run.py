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

from exact_resume.checkpoints import checkpoints, manifest, ownership, result_file, seal
from exact_resume.checkpoints.lease import Lease
from exact_resume.events import log as event_log
from exact_resume.events.log import EventLog
from exact_resume.files import storage
from exact_resume.text import one_line
from exact_resume.workers import cluster, notices
from exact_resume.workers.signals import StopRequest
from exact_resume.workers.watchdog import leave_displaced
from exact_resume.wrapper import exit_codes
from exact_resume.wrapper.committer import Committer, Target
from exact_resume.wrapper.exit_codes import Translation
from exact_resume.wrapper.folders import CommandFolder, Restored
from exact_resume.wrapper.guard import Guard
from exact_resume.wrapper.output import Output, Progress
from exact_resume.wrapper.whole import Rule

_JOB_ID = "CLOUD_ML_JOB_ID"
_POLL_SECONDS = 0.2


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """What the user asked for, apart from the command."""

    directory: str
    """Checkpoint folder, local or gs://."""
    watched: pathlib.Path
    """Folder in which the command writes its checkpoints."""
    rule: Rule
    keep: int
    pattern: re.Pattern[str] | None
    """Of a line with progress; None: the output is not read."""
    table: Mapping[int, Translation]
    lost_peer: re.Pattern[str]
    error_file: pathlib.Path
    """Where torchrun writes its errors."""
    identity: dict[str, Any]
    """What decides what the command computes."""


class WrappedRun:
    """One start of the wrapper."""

    def __init__(self, settings: Settings, guard: Guard, stop: StopRequest) -> None:
        """Prepare; `run` does everything.

        Args:
            settings: What the user asked for.
            guard: Starts the command.
            stop: Remembers signals.
        """
        self._settings, self._guard, self._stop = settings, guard, stop
        self._run_id = manifest.run_id(settings.identity)
        self._lease = Lease(settings.directory, os.environ.get(_JOB_ID, ""), report=_print)
        replica = event_log.replica_name(os.environ, cluster.read(os.environ))
        self._is_primary = replica == event_log.PRIMARY
        may_write = self._lease.may_write if self._is_primary else lambda: True
        self._events = EventLog(settings.directory, replica, may_write=may_write)
        self._lock = threading.Lock()
        self._progress = Progress(pattern=settings.pattern, log_event=self._log_event)

    def run(self) -> int:
        """Run the command from its newest checkpoint and return the exit code.

        Raises:
            InputError: A folder belongs to another run.
            RunError: Another job trains in the checkpoint folder.
            OSError: The checkpoint folder cannot be read or written.
            KeyboardInterrupt: A second Ctrl-C; the command was killed.
        """
        with self._stop.immediate(self._leave):
            if self._is_finished():
                return 0
        try:
            return self._run()
        finally:
            # No command runs without the lease.
            self._guard.close()
            has_checkpoint = True
            with contextlib.suppress(OSError):
                has_checkpoint = bool(checkpoints.steps(self._settings.directory))
            self._lease.release(has_checkpoint=has_checkpoint)

    def _run(self) -> int:
        settings = self._settings
        with self._stop.immediate(self._leave):
            folder, restored = self._prepare()
        committer = None
        if self._is_primary:
            committer = Committer(
                folder,
                Target(
                    directory=settings.directory,
                    lease=self._lease,
                    identity=settings.identity,
                    keep=settings.keep,
                ),
                restored,
                progress=lambda: {"step": self._progress.step, **self._progress.figures} if self._progress.step else {},
                log_event=self._log_event,
                lost=leave_displaced,
            )
            committer.start()
        outputs = [Output(target, self._progress.lines) for target in (1, 2)] if settings.pattern else []
        errors_before = _stamp(settings.error_file)
        self._guard.start(folder.lock, [output.descriptor for output in outputs])
        for output in outputs:
            output.start()
        with self._stop.immediate(lambda: self._guard.send(self._stop.signal_number)):
            raw, stop_signal = self._follow(committer)
            for output in outputs:
                output.join()
            self._progress.update(is_last=True)
            error = committer.finish() if committer else None
        code = raw if raw >= 0 else 128 - raw
        is_new = _stamp(settings.error_file) != errors_before
        code, reason = exit_codes.translate(
            code,
            settings.table,
            stop_signal=stop_signal,
            error=exit_codes.read_error(settings.error_file) if is_new else "",
            lost_peer=settings.lost_peer,
        )
        if raw < 0 and not reason:
            reason = f"{signal.Signals(-raw).name} ended it"
        if code == 0 and error:
            code, reason = 1, f"its last checkpoint could not be committed ({error})"
        if code == 0 and committer:
            code, reason = self._write_result(committer.number)
        if reason:
            self._notice(f"the command ended with {raw}, and the exit code is {code}: {reason}")
        self._log_event("exit", code=code)
        return code

    def _is_finished(self) -> bool:
        """Refuse the folder of another run; return whether this one is finished."""
        directory, identity = self._settings.directory, self._settings.identity
        if result := result_file.read_result(directory):
            ownership.refuse_other_run(result.get("identity", {}), identity, directory, defaults={})
            if result_file.is_finished(directory, expected_run_id=self._run_id):
                _print(f"run {self._run_id} is finished; the command is not started")
                return True
        if found := ownership.identity_in(directory):
            ownership.refuse_other_run(found, identity, directory, defaults={})
        return False

    def _prepare(self) -> tuple[CommandFolder, Restored]:
        """Take the lease, claim the command's folder, and restore the newest checkpoint into it."""
        directory, started = self._settings.directory, time.monotonic()
        if self._is_primary:
            self._lease.take(self._settings.identity)
            self._lease.keep(leave_displaced)
            storage.remove_partial(directory)
        folder = CommandFolder(self._settings.watched, self._settings.rule, self._run_id)
        messages: list[str] = []
        restored = folder.restore(directory, messages.append)
        self._log_event("start", run_id=self._run_id, pid=os.getpid(), exact=False)
        for message in messages:
            self._notice(message)
        self._progress.resume(int(restored.progress.get("step", 0)))
        if restored.is_copied:
            step = self._progress.step or restored.number
            self._log_event("restore", step=step, seconds=time.monotonic() - started)
            _print(f"restored {manifest.name(restored.number)} into {str(folder.path)!r}")
        return folder, restored

    def _follow(self, committer: Committer | None) -> tuple[int, int]:
        """Wait for the end of the command; return its code and the signal that it was sent, 0 for none."""
        watcher, is_noted = notices.watch(os.environ), False
        try:
            while (code := self._guard.wait(_POLL_SECONDS)) is None:
                self._progress.update()
                if committer and committer.error:
                    raise committer.error
                for notice in watcher.pending():
                    self._notice(f"the metadata server announced {notice.kind}: {notice.text}")
                    if notice.kind == "preempted":
                        os.kill(os.getpid(), signal.SIGTERM)
                if self._stop.is_set and not is_noted:
                    is_noted = True
                    self._notice(f"{self._stop.signal_name} was passed on to the command")
        finally:
            watcher.close()
        return code, self._stop.signal_number

    def _write_result(self, number: int) -> tuple[int, str]:
        """Mark the run as finished; return the exit code, and the reason if that failed."""
        if not number:
            self._notice(
                "the command ended with 0 and has no whole checkpoint, so there is no result.json and a restart runs it"
                " again; compare --watch and --whole with what it writes"
            )
            return 0, ""
        starts = [event for event in event_log.read(self._settings.directory) if event["event"] == "start"]
        content = {
            "run_id": self._run_id,
            "identity": self._settings.identity,
            "final_step": self._progress.step or None,
            "num_planned_steps": None,
            "stop_reason": "the command ended with 0",
            "best_step": number,
            "best_checkpoint": manifest.name(number),
            "lost_best_step": None,
            "examples": "unknown",
            "metrics": self._progress.figures,
            "num_restarts": max(0, sum(event["replica"] == event_log.PRIMARY for event in starts) - 1),
        }
        path = storage.join(self._settings.directory, result_file.RESULT_FILE)
        try:
            self._lease.fence.write(path, storage.encode_json(seal.add_seal(content)))
        except OSError as error:
            return 1, f"result.json could not be written ({error})"
        return 0, ""

    def _log_event(self, event: str, **fields: Any) -> None:
        if event == "notice":
            _print(fields["message"])
        with self._lock:
            self._events.write(event, **fields)

    def _notice(self, message: str) -> None:
        self._log_event("notice", message=message)

    def _leave(self) -> NoReturn:
        _print(f"{self._stop.signal_name}: stopped before the command was started")
        raise SystemExit(self._stop.exit_code)


def _print(message: str) -> None:
    print(one_line(f"exact_resume: {message}"), file=sys.stderr, flush=True)


def _stamp(path: pathlib.Path) -> tuple[int, int] | None:
    with contextlib.suppress(OSError):
        found = path.stat()
        return found.st_ino, found.st_mtime_ns
    return None
