"""The folders of runs and steps, as requests name them; no path leads out of a run."""

from pathlib import Path

from localvertex.api.rest.errors import ApiError, Status, not_found
from localvertex.api.rest.store import ID
from localvertex.show.view.inside import is_inside
from localvertex.store import record

_MISSING = "the run {name} does not exist; it may have been deleted"


def find_run(work_dir: Path, run_id: str) -> Path:
    """Return the folder of a run.

    Raises:
        ApiError: There is no such run.
    """
    folder = work_dir / run_id
    if not ID.fullmatch(run_id) or folder.is_symlink() or not (folder / record.FILE).is_file():
        raise ApiError(Status.NOT_FOUND, _MISSING.format(name=run_id[:200]))
    return folder


def step_folder(run_dir: Path, task: str) -> Path:
    """Return the folder of a step by its path in the record; it may not exist yet.

    Raises:
        ApiError: It is not the path of a step.
    """
    if not task or not is_inside(run_dir / task, run_dir):
        raise not_found(f"the step {task[:200]!r} of {run_dir.name}")
    return run_dir / task
