"""Restores a run from its newest intact checkpoint, the same one on all workers."""

import dataclasses
import time

from exact_resume.checkpoints import checkpoints, manifest
from exact_resume.checkpoints.checkpoints import Checkpoint
from exact_resume.checkpoints.lease import LEASE_FILE
from exact_resume.files import storage
from exact_resume.run_folder import RunFolder
from localvertex_base.userinput.errors import UserError
from trainer.learner.learner import Learner
from trainer.loop.worker_sync import WorkerSync

_NUM_ATTEMPTS = 10


def restore(learner: Learner, sync: WorkerSync, folder: RunFolder, empty: Checkpoint) -> Checkpoint:
    """Give the learner the state of the newest intact checkpoint that the chief finds.

    Args:
        learner: Receives variables, step and loss scaling.
        sync: Synchronisation with the other workers.
        folder: Checkpoint folder, shared by all workers.
        empty: Checkpoint of step 0.

    Returns:
        The checkpoint, or the empty one.

    Raises:
        InputError: The folder contains another run.
        UserError: A worker does not share the folder.
        OSError: A checkpoint cannot be read now; nothing was removed.
    """
    started, checkpoint = time.monotonic(), empty
    if folder.is_chief:
        checkpoint = folder.newest() or empty
    # The chief decides for all: workers could differ if a checkpoint is damaged later or the folder is not shared.
    step = sync.value_of_chief(checkpoint.step)
    is_validated = bool(sync.value_of_chief(int(checkpoint.is_validated)))
    if not folder.is_chief:
        _refuse_unshared(folder.directory)
    if step and not folder.is_chief:
        checkpoint = dataclasses.replace(_load(folder.directory, step), is_validated=is_validated)
        folder.refuse_other_run(checkpoint.identity)
    if step:
        learner.restore(checkpoint)
        folder.log_event("restore", step=step, seconds=time.monotonic() - started)
    return checkpoint


def _refuse_unshared(directory: str) -> None:
    # A file that the chief has just written may appear late in a mounted file system.
    for _ in range(_NUM_ATTEMPTS):
        if storage.exists(storage.join(directory, LEASE_FILE)):
            return
        time.sleep(1.0)
    raise UserError(
        f"{directory!r} does not have the file that the chief wrote, so it is a different folder; give all workers one"
        " shared --checkpoint-directory"
    )


def _load(directory: str, step: int) -> Checkpoint:
    try:
        return checkpoints.load(directory, step)
    except manifest.TornCheckpoint as error:
        raise UserError(
            f"the chief resumes from {manifest.name(step)} of {directory!r}, which this worker cannot read"
            f" ({error}); give all workers one shared --checkpoint-directory"
        ) from error
