"""The folder of a run: it appears complete, and it is held by a lock for as long as anything of the run lives."""

import fcntl
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO
from uuid import uuid4

from compiled.load import PipelineFile
from localvertex.state import record
from userinput.errors import UserError

LOCK_POLL_SECONDS = 0.05

MARGIN_SECONDS = 10.0
"""For the supervisors of a killed run to end what they watch over, beyond the grace time."""


def create(run_dir: Path, file: PipelineFile, write_record: Callable[[Path], None]) -> IO[str]:
    """Makes the folder with a copy of the compiled file and a first record, and holds it.

    It is put together aside and renamed, so that a folder of a run always has a record.

    Raises:
        UserError: it cannot be created, or another run took the name.
    """
    staged = run_dir.parent / record.PRIVATE / f"new-{uuid4().hex}"
    try:
        staged.mkdir(parents=True)
        hold = lock(staged)
        shutil.copyfile(file.path, staged / f"pipeline{'.json' if file.path.suffix == '.json' else '.yaml'}")
        write_record(staged)
        os.rename(staged, run_dir)
        return hold
    except OSError as error:
        shutil.rmtree(staged, ignore_errors=True)
        if run_dir.exists():
            raise UserError(f"{run_dir} exists already; choose another --run-id") from None
        raise UserError(f"the work directory {run_dir.parent} cannot be used: {error.strerror}") from None


def pipeline_copy(run_dir: Path) -> Path:
    """The compiled file that the run was started with.

    Raises:
        UserError: it is gone.
    """
    for name in ("pipeline.json", "pipeline.yaml"):
        if (run_dir / name).is_file():
            return run_dir / name
    raise UserError(f"{run_dir} holds no copy of its compiled pipeline; it cannot go on")


def lock(folder: Path) -> IO[str]:
    """Takes the run's lock: held until the file is closed here and in every supervisor that was given it.

    Raises:
        BlockingIOError: somebody holds it.
    """
    file = (folder / record.LOCK).open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise
    return file


def hold_when_free(run_dir: Path, *, timeout_seconds: float) -> IO[str]:
    """Takes the lock of an earlier run; waits for what a killed run has left to end.

    Raises:
        UserError: it is still running.
    """
    deadline = time.monotonic() + timeout_seconds
    while True:
        try:
            return lock(run_dir)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise UserError(f"{run_dir.name} is still running; stop it first") from None
            time.sleep(LOCK_POLL_SECONDS)
        except OSError as error:
            raise UserError(f"{run_dir} cannot be used: {error.strerror}") from None
