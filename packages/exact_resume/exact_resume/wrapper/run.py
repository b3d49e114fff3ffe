"""The run of a wrapped command, from the lease on the checkpoint folder to result.json."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from exact_resume.checkpoints import ownership, result_file
from exact_resume.errors import InputError
from exact_resume.events import log as event_log
from exact_resume.run_folder import RunFolder, print_notice
from exact_resume.text import report
from exact_resume.workers import place
from exact_resume.workers.signals import StopRequest
from exact_resume.workers.watchdog import EXIT_LOST_PEER
from exact_resume.wrapper import exit_codes, guard
from exact_resume.wrapper.output import Progress
from exact_resume.wrapper.snapshots import Snapshots
from exact_resume.wrapper.whole import NotWhole, Rule

_POLL_SECONDS = 0.5
_SECONDS_AFTER_FAILURE = 15.0


def run(
    command: Sequence[str],
    directory: str,
    rule: Rule,
    progress: Progress,
    table: exit_codes.Table,
    identity: dict[str, Any],
) -> int:
    """Run a command from its newest checkpoint and return the exit code.

    Args:
        command: Program and arguments.
        directory: Checkpoint folder, local or gs://.
        rule: Which entries of the command's folder are whole checkpoints.
        progress: Reads the command's output.
        table: Translation of exit codes.
        identity: What decides what the command computes.

    Raises:
        InputError: A folder belongs to another run.
        RunError: Another process uses a folder.
        OSError: A folder cannot be read or written.
        KeyboardInterrupt: A second Ctrl-C; the command was killed.
    """
    stop = StopRequest().install()
    rank = place.read(os.environ).rank
    # Of several machines, each restores into its own folder, and the first one commits.
    folder, own = (
        RunFolder(
            each,
            identity,
            is_chief=is_holder,
            stop=stop,
            report=report,
            observer=print_notice,
            defaults={},
            way_on="give another folder",
        )
        for each, is_holder in ((directory, not rank), (str(rule.own), True))
    )
    snapshots = Snapshots(
        directory=directory,
        rule=rule,
        run={"run_id": folder.run_id, "identity": identity},
        fence=folder.lease.fence,
        log_event=folder.log_event,
        progress=progress,
        is_first=not rank,
    )
    try:
        with stop.immediate(lambda: sys.exit(stop.exit_code)):
            for each in (folder, own):
                each.refuse_other_run()
            if (rule.names() or rule.names_also()) and not ownership.identity_in(own.directory):
                raise InputError(
                    f"{str(rule.folder)!r} contains checkpoints that no wrapped run wrote; move them away, or give an"
                    " empty folder with --watch"
                )
            if result_file.is_finished(directory):
                report("the run is finished; the command is not started")
                return 0
            for each in (folder, own):
                each.take()
            folder.open(event_log.replica_of_rank(rank), watchdog_seconds=0)
            folder.log_start(exact=False)
            snapshots.restore()
        error_file = rule.own / "error.json"
        code = _follow(command, folder, snapshots, stop, error_file)
        translated, reason = exit_codes.translate(code, table, stop_signal=stop.signal_number, error_file=error_file)
        try:
            snapshots.commit(code=code)
            if not rank:
                snapshots.note_end(0 if stop.signal_number or translated == EXIT_LOST_PEER else translated)
            if not translated and not rank:
                _write_result(snapshots)
        except (OSError, NotWhole) as error:
            translated, reason = translated or 1, f"its end could not be committed: {error}"
        if reason:
            folder.notice(f"the command ended with {code}, the exit code is {translated}: {reason}")
        folder.log_exit(translated)
        return translated
    finally:
        with contextlib.suppress(OSError):
            own.lease.release(has_checkpoint=bool(rule.names()))
        folder.close()


def _follow(
    command: Sequence[str], folder: RunFolder, snapshots: Snapshots, stop: StopRequest, error_file: Path
) -> int:
    """Run the command, commit its checkpoints, and return its exit code."""
    progress, next_commit = snapshots.progress, 0.0
    error_file.unlink(missing_ok=True)
    # Python would keep lines back when it writes into a pipe.
    environment = {"PYTHONUNBUFFERED": "1", **os.environ, exit_codes.ERROR_FILE: str(error_file)}
    process = guard.start(command, environment, subprocess.PIPE if progress.pattern else None)
    threading.Thread(target=_listen, args=(folder,), daemon=True).start()
    with ThreadPoolExecutor() as readers, stop.immediate(lambda: process.send_signal(stop.signal_number)):
        try:
            for source, target in ((process.stdout, 1), (process.stderr, 2)):
                if source:
                    readers.submit(progress.follow, source, target)
            while process.poll() is None:
                progress.log(folder.log_event)
                snapshots.check_progress()
                try:
                    if time.monotonic() >= next_commit:
                        snapshots.commit()
                except (OSError, NotWhole) as error:
                    next_commit = time.monotonic() + _SECONDS_AFTER_FAILURE
                    folder.notice(f"a checkpoint could not be committed, the command continues: {error}")
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_SECONDS)
        finally:
            code = guard.end(process)
    progress.log(folder.log_event)
    snapshots.check_progress()
    return code


def _listen(folder: RunFolder) -> None:
    """Turn a preemption into SIGTERM, even while the main thread commits a checkpoint."""
    while True:
        time.sleep(_POLL_SECONDS)
        for notice in folder.watcher.pending():
            if notice.kind == "preempted":
                os.kill(os.getpid(), signal.SIGTERM)
            folder.notice(f"the metadata server announced {notice.kind}: {notice.text}", kind=notice.kind)


def _write_result(snapshots: Snapshots) -> None:
    """Mark the run as finished, if a restart could find its last checkpoint.

    `best_step` counts the checkpoints, and `metrics` are the figures of the log's last line with progress.
    """
    number, figures = snapshots.number, snapshots.progress.figures
    if not number:
        snapshots.log_event(
            "notice",
            message="the command ended with 0 and has no whole checkpoint, so there is no result.json and a restart"
            " runs it again; compare --watch and --whole with what it writes",
        )
        return
    result_file.write(
        snapshots.directory,
        **snapshots.run,
        final_step=int(figures["step"]) if "step" in figures else None,
        stop_reason="the command ended with 0",
        best_step=number,
        fence=snapshots.fence,
        examples="unknown",
        metrics=figures,
    )
