"""Restores a run from its newest intact checkpoint, the same one on all workers."""

import time

from trainer.checkpoints import checkpoints, variables
from trainer.checkpoints.checkpoints import Checkpoint
from trainer.checkpoints.lease import LEASE_FILE
from trainer.files import storage
from trainer.files.observers import Observer
from trainer.learner.learner import Learner
from trainer.loop.worker_sync import WorkerSync
from userinput.errors import UserError

_NUM_ATTEMPTS = 10


def restore(
    learner: Learner, sync: WorkerSync, directory: str, empty: Checkpoint, *, is_chief: bool, log_event: Observer
) -> Checkpoint:
    """Give the learner the state of the newest intact checkpoint that the chief finds.

    Args:
        learner: Receives variables, step and loss scaling.
        sync: Synchronisation with the other workers.
        directory: Checkpoint directory, shared by all workers.
        empty: Checkpoint of step 0 with the run's identity.
        is_chief: Whether this worker chooses the checkpoint and removes what killed writers left.
        log_event: Receives the notices about skipped checkpoints and the restore event.

    Returns:
        The checkpoint, or `empty` if there is none.

    Raises:
        UserError: The directory contains another run, or a worker does not share it.
    """
    started, checkpoint = time.monotonic(), empty
    if is_chief:
        storage.remove_partial(directory)
        found, skipped = checkpoints.newest(directory)
        checkpoint = found or checkpoint
        for line in skipped:
            log_event("notice", message=line)
        checkpoints.remove_newer(directory, checkpoint.step)
    # The chief decides for all: workers could differ if a checkpoint is damaged later or the folder is not shared.
    step = sync.value_of_chief(checkpoint.step)
    if not is_chief:
        _refuse_unshared(directory)
    if step and not is_chief:
        checkpoint = _load(directory, step)
    if step:
        checkpoints.refuse_other_run(checkpoint.identity, empty.identity, directory)
        variables.assign(learner.variables(), checkpoint.arrays)
        learner.set_loss_scaling(checkpoint.loss_scaling)
        learner.step = step
        log_event("restore", step=step, seconds=time.monotonic() - started)
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
    except checkpoints.TornCheckpoint as error:
        raise UserError(
            f"the chief resumes from {checkpoints.name(step)} of {directory!r}, which this worker cannot read"
            f" ({error}); give all workers one shared --checkpoint-directory"
        ) from error
