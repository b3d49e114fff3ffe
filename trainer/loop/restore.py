"""Restores a run from its newest intact checkpoint, the same one on all workers."""

import dataclasses
import time

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
    started = time.monotonic()
    checkpoint = folder.newest(sync.value_of_chief) or empty
    checkpoint = dataclasses.replace(checkpoint, is_validated=bool(sync.value_of_chief(int(checkpoint.is_validated))))
    if not folder.is_chief:
        _refuse_unshared(folder.directory)
    if checkpoint.step:
        learner.restore(checkpoint)
        folder.log_event("restore", step=checkpoint.step, seconds=time.monotonic() - started)
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
