"""The folder of a run: its name, its creation in one piece, and its lock while any process of the run lives."""

import fcntl
import os
import re
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from localvertex._base.compiled.load import PipelineFile
from localvertex._base.userinput import atomic_write
from localvertex._base.userinput.errors import UserError
from localvertex.store import record
from localvertex.store.task import State

RUN_ID = re.compile(r"[a-z][a-z0-9-]{0,127}")
"""Ids that Vertex AI accepts for a pipeline job."""

RESERVED = ("models", "endpoints", "training", "prepared", "api", "buckets")
"""Folders of the work folder that are not runs."""

NEW = f"{record.PRIVATE}/new"
"""Folder in the work folder where folders of runs are built; one that a killed process left is removed later."""

_LOCK_POLL_SECONDS = 0.05

MARGIN_SECONDS = 10.0
"""Time beyond the grace time for the supervisors of a killed run to end their processes."""


class NotBegun(UserError):
    """The first record of a run, or of its resume, cannot be written."""

    def __init__(self, message: str, reason: OSError) -> None:
        super().__init__(message)
        self.reason = reason


def readable_id(pipeline_name: str, ending: str) -> str:
    """Return an id made from the pipeline's name, whatever its characters."""
    name = re.sub(r"[^a-z0-9-]+", "-", pipeline_name.lower()).strip("-")[:100] or "pipeline"
    stem = f"{name}-{ending}"
    return stem if stem[0].isalpha() else f"p-{stem}"


def new_run_id(pipeline_name: str, work_dir: Path) -> str:
    """Return a free id as the SDK does: the pipeline's name and the time, numbered within one second."""
    stem = readable_id(pipeline_name, f"{datetime.now(UTC):%Y%m%d%H%M%S}")
    number, run_id = 1, stem
    while (work_dir / run_id).exists():
        number += 1
        run_id = f"{stem}-{number}"
    return run_id


def check_run_id(run_id: str, work_dir: Path) -> str:
    """Check a run id that the user gave, and return it.

    Raises:
        UserError: It is not a valid id, or it is in use.
    """
    if not RUN_ID.fullmatch(run_id):
        raise UserError(f"--run-id {run_id!r}: expected at most 128 lower-case letters, digits and '-', a letter first")
    if run_id in RESERVED:
        raise UserError(
            f"--run-id {run_id!r} is reserved for another folder of the work folder; choose a different one"
        )
    if (work_dir / run_id).exists():
        raise UserError(f"--run-id {run_id!r}: {work_dir / run_id} already exists; choose another id or clean it first")
    return run_id


def create(run_dir: Path, file: PipelineFile, write_record: Callable[[Path], None]) -> IO[str]:
    """Create the folder with a copy of the compiled file and a first record, and return its lock.

    The folder is built under another name and renamed, so that a folder of a run always has a record.

    Raises:
        NotBegun: The disk is full, for example.
        UserError: Another run took the name.
    """
    try:
        make_work_dir(run_dir.parent)
        new = run_dir.parent / NEW
        new.parent.mkdir(exist_ok=True)
        atomic_write.remove_left(new)
        with atomic_write.folder(new) as staged:
            hold = lock(staged)
            shutil.copyfile(file.path, staged / f"pipeline{'.json' if file.path.suffix == '.json' else '.yaml'}")
            write_record(staged)
            os.rename(staged, run_dir)
            return hold
    except OSError as error:
        if run_dir.exists():
            raise UserError(f"{run_dir} already exists; choose another --run-id") from None
        raise NotBegun(f"cannot use the work folder {run_dir.parent}: {error.strerror}", error) from None


def not_begun(run_dir: Path, error: OSError) -> NotBegun:
    """Build the error for a run that cannot be resumed; its earlier record remains."""
    return NotBegun(f"{run_dir} cannot be resumed: {error.strerror or error}; nothing has changed", error)


def make_work_dir(work_dir: Path) -> None:
    """Create a work folder that only its owner can use; one that exists is left as it is.

    Raises:
        OSError: It cannot be created.
    """
    work_dir.parent.mkdir(parents=True, exist_ok=True)
    work_dir.mkdir(mode=0o700, exist_ok=True)


def is_open_to_others(work_dir: Path) -> bool:
    """Return whether other users can open a work folder of this user."""
    found = work_dir.stat()
    return found.st_uid == os.geteuid() and bool(found.st_mode & 0o077)


def of_other_user(work_dir: Path) -> Path | None:
    """Return the work folder or its folder `api` if another user, who is not root, owns it, else None."""
    folders = (each for each in (work_dir, work_dir / "api") if each.exists())
    return next((each for each in folders if each.stat().st_uid not in (0, os.geteuid())), None)


def pipeline_copy(run_dir: Path) -> Path:
    """Return the path of the compiled file that the run was started with.

    Raises:
        UserError: The file is missing.
    """
    for name in ("pipeline.json", "pipeline.yaml"):
        if (run_dir / name).is_file():
            return run_dir / name
    raise UserError(f"{run_dir} has no copy of its compiled pipeline and cannot be resumed; start a new run")


def lock(folder: Path) -> IO[str]:
    """Take the run's lock, which is held until the file is closed here and in every supervisor that inherits it.

    Raises:
        BlockingIOError: Another process holds it.
    """
    file = (folder / record.LOCK).open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise
    return file


def hold_when_free(run_dir: Path, *, timeout_seconds: float) -> IO[str]:
    """Take the lock of an earlier run; wait until the remaining processes of a killed run have ended.

    Raises:
        UserError: It is still running.
    """
    deadline = time.monotonic() + timeout_seconds
    while True:
        try:
            return lock(run_dir)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise UserError(f"{run_dir.name} is still running; stop it first") from None
            time.sleep(_LOCK_POLL_SECONDS)
        except OSError as error:
            raise UserError(f"cannot use {run_dir}: {error.strerror}") from None


def wait_for_last_processes(run_dir: Path) -> None:
    """Wait until no process holds a run whose end is recorded: supervisors report the end of a step before they end.

    This does not wait for a run that is still running.
    """
    deadline = time.monotonic() + MARGIN_SECONDS
    while record.is_running(run_dir) and _has_ended(run_dir) and time.monotonic() < deadline:
        time.sleep(_LOCK_POLL_SECONDS)


def _has_ended(run_dir: Path) -> bool:
    with suppress(OSError, ValueError):
        return State(record.read(run_dir)["state"]).is_final
    return False
