"""Runs work items on this machine by Beam's FnApiRunner, for tests of what runs on Dataflow in the cloud.

FnApiRunner has no attempts after a failure, and waits for ever for a worker that was killed. So it runs in a process of
its own (`fn_api_job`), which ends as soon as a worker ends, and the items without a result are run again.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile

from trainer.command_line import TrainingError
from trainer.data.preparing.engines import exchange

_NUM_ATTEMPTS = 4
"""As many as Dataflow has for a bundle."""


def run(folder: str) -> None:
    """Do the work of all items in a folder that have no result.

    Raises:
        Exception: The one of a worker; a UserError at once, another one after the last attempt.
        TrainingError: The workers end without one.
    """
    last_line = ""
    for number in range(_NUM_ATTEMPTS):
        if not exchange.missing(folder):
            return
        last_line = _attempt(folder)
        try:
            exchange.raise_error(folder)
        except (OSError, TrainingError):
            if number == _NUM_ATTEMPTS - 1:
                raise
    if remaining := exchange.missing(folder):
        raise TrainingError(
            f"{len(remaining)} work items have no result after {_NUM_ATTEMPTS} attempts on FnApiRunner ({last_line});"
            " see whether the workers have enough memory"
        )


def _attempt(folder: str) -> str:
    """Run a job and return the last line of its log; what it did not do has no result."""
    command = [sys.executable, "-m", "trainer.data.preparing.engines.fn_api_job", folder]
    # Beam's log is long and has tracebacks of errors that the next attempt may not have.
    with tempfile.TemporaryFile(prefix="beam-") as log:
        # The job ends when this process does, because then its stdin ends. Its workers are in its group.
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True) as job:
            try:
                job.wait()
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(job.pid, signal.SIGKILL)
        log.seek(0)
        lines = log.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "without a log")
