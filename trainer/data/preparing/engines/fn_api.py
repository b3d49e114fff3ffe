"""Processes work items on this machine by Beam's FnApiRunner, to test what Dataflow runs in the cloud.

FnApiRunner does not retry after a failure, and waits forever for a killed worker. It therefore runs in a process of its
own (`fn_api_job`), which ends as soon as a worker ends. Items without a result are then processed again.
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
"""Number of attempts, as on Dataflow for a bundle."""


def run(folder: str) -> None:
    """Process all items in a folder that have no result.

    Raises:
        Exception: A worker raised it; a UserError is raised at once, another exception after the last attempt.
        TrainingError: The workers ended without an exception.
    """
    last_line = ""
    for number in range(_NUM_ATTEMPTS):
        if not exchange.missing_results(folder):
            return
        last_line = _attempt(folder)
        try:
            exchange.raise_error(folder)
        except (OSError, TrainingError):
            if number == _NUM_ATTEMPTS - 1:
                raise
    if remaining := exchange.missing_results(folder):
        raise TrainingError(
            f"{len(remaining)} work items have no result after {_NUM_ATTEMPTS} attempts on FnApiRunner ({last_line});"
            " check whether the workers have enough memory"
        )


def _attempt(folder: str) -> str:
    """Run a job and return the last line of its log; unfinished items have no result."""
    command = [sys.executable, "-m", "trainer.data.preparing.engines.fn_api_job", folder]
    # Beam's log is long and has tracebacks of errors that the next attempt may avoid.
    with tempfile.TemporaryFile(prefix="beam-") as log:
        # The job ends with this process, because its stdin is then closed. Its workers are in its process group.
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True) as job:
            try:
                job.wait()
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(job.pid, signal.SIGKILL)
        log.seek(0)
        lines = log.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "without a log")
