"""The files of a run that has ended: removed by a request, and completed when the disk was full at its end."""

from pathlib import Path

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.errors import UserError
from localvertex.api.rest.errors import ApiError, Status, not_found
from localvertex.store import journal, record, removal, run_folder
from localvertex.store.runs import Found, find_all
from localvertex.store.task import State


def check_removable(run_dir: Path) -> None:
    """Refuse to delete a run that `localvertex clean` would keep.

    Raises:
        ApiError: There is no such run, it is running, or something else needs its files.
    """
    if run_dir.name in run_folder.RESERVED or not (run_dir / record.FILE).is_file():
        raise not_found(f"the run {run_dir.name}")
    kept = removal.plan(run_dir.parent, [Found(run_dir=run_dir, content={})], find_all(run_dir.parent)).kept
    if run_dir in kept:
        reason = f"{run_dir.name} cannot be deleted: {kept[run_dir]}; nothing was deleted"
        raise ApiError(Status.FAILED_PRECONDITION, reason)


def remove_run(run_dir: Path) -> None:
    """Delete a run; keep its files, but not its record, when another run or a model refers to them.

    Raises:
        ApiError: A file cannot be deleted.
    """
    if run_dir.name in run_folder.RESERVED or not run_dir.is_dir():
        # The stored part of the job was damaged, and has no run.
        return
    found = Found(run_dir=run_dir, content={})
    try:
        for each in removal.plan(run_dir.parent, [found], find_all(run_dir.parent)).removed:
            removal.remove(each)
    except UserError as error:
        raise ApiError(Status.FAILED_PRECONDITION, str(error)) from None
    for path in (run_dir / record.FILE, *run_dir.glob(journal.PATTERN)):
        path.unlink(missing_ok=True)


def write_end(run_dir: Path, content: JsonObject) -> None:
    """Write the complete record of a run, unless the run was removed or resumed meanwhile.

    Raises:
        OSError: It cannot be written yet; also while another process checks the lock of the run, or resumes the run.
    """
    try:
        hold = run_folder.lock(run_dir)
    except FileNotFoundError:
        return
    with hold:
        try:
            present = record.read(run_dir)
        except (FileNotFoundError, ValueError):
            return
        if State(present["state"]).is_final or present["resume_times"] != content["resume_times"]:
            return
        record.write(run_dir, content)
        for path in run_dir.glob(journal.PATTERN):
            path.unlink(missing_ok=True)
