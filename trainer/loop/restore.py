"""Restores a run from its newest intact checkpoint, the same one on all workers."""

import dataclasses
import time

from exact_resume.checkpoints import checkpoints, manifest, ownership
from exact_resume.checkpoints.async_writer import Checkpointing, CheckpointWriter, NoCheckpoints
from exact_resume.checkpoints.checkpoints import Checkpoint
from exact_resume.checkpoints.lease import LEASE_FILE, Lease
from exact_resume.events.observers import Observer
from exact_resume.files import storage
from localvertex_base.userinput.errors import UserError
from trainer.checkpoints import identity, variables
from trainer.learner.learner import Learner
from trainer.loop.worker_sync import WorkerSync

_NUM_ATTEMPTS = 10


@dataclasses.dataclass(frozen=True, kw_only=True)
class Restored:
    """Where a run resumes."""

    checkpoint: Checkpoint
    """The newest intact checkpoint, or the empty one of step 0."""
    lease: Lease | None
    """The right to write; only the chief has it."""
    passed_over: tuple[int, ...]
    """Steps of the newer checkpoints, which are damaged."""

    def writer(self, directory: str, *, keep: int, log_event: Observer) -> Checkpointing:
        """Return what saves the run's checkpoints from here on."""
        best, saved_step = self.checkpoint.best, self.checkpoint.step
        if self.lease is None:
            return NoCheckpoints(best=best, saved_step=saved_step)
        return CheckpointWriter(
            directory,
            self.lease,
            keep=keep,
            best=best,
            saved_step=saved_step,
            log_event=log_event,
            passed_over=self.passed_over,
        )


def restore(
    learner: Learner, sync: WorkerSync, directory: str, empty: Checkpoint, *, lease: Lease | None, log_event: Observer
) -> Restored:
    """Give the learner the state of the newest intact checkpoint that the chief finds.

    Args:
        learner: Receives variables, step and loss scaling.
        sync: Synchronisation with the other workers.
        directory: Checkpoint folder, shared by all workers.
        empty: Checkpoint of step 0 with the run's identity.
        lease: Held by the chief, which selects the checkpoint and removes the remains of killed or former writers; None
            on other workers.
        log_event: Receives the notices about skipped checkpoints and the restore event.

    Raises:
        InputError: The folder contains another run.
        UserError: A worker does not share the folder.
        OSError: A checkpoint cannot be read now; nothing was removed.
    """
    started, checkpoint, passed_over = time.monotonic(), empty, list[int]()
    is_chief = lease is not None
    if is_chief:
        checkpoint, passed_over = _find(directory, empty, log_event)
    # The chief decides for all: workers could differ if a checkpoint is damaged later or the folder is not shared.
    step = sync.value_of_chief(checkpoint.step)
    is_validated = bool(sync.value_of_chief(int(checkpoint.is_validated)))
    if not is_chief:
        _refuse_unshared(directory)
    if step and not is_chief:
        checkpoint = dataclasses.replace(_load(directory, step), is_validated=is_validated)
        ownership.refuse_other_run(checkpoint.identity, empty.identity, directory, defaults=identity.DEFAULTS)
    if step:
        # First, because it decides which variables there are.
        learner.step = step
        variables.assign(learner.variables(), checkpoint.arrays)
        learner.refresh()
        learner.set_loss_scaling(checkpoint.loss_scaling)
        log_event("restore", step=step, seconds=time.monotonic() - started)
    return Restored(checkpoint=checkpoint, lease=lease, passed_over=tuple(passed_over))


def _find(directory: str, empty: Checkpoint, log_event: Observer) -> tuple[Checkpoint, list[int]]:
    """Return the newest intact checkpoint of this run, and the steps of the newer ones."""
    # Compared again, because another run may have started in the meantime.
    found_identity = ownership.identity_in(directory) or empty.identity
    ownership.refuse_other_run(found_identity, empty.identity, directory, defaults=identity.DEFAULTS)
    # Before the selection, so that a former holder that wakes up can no longer commit a newer checkpoint.
    storage.remove_partial(directory)
    found, skipped = checkpoints.newest(directory)
    for line in skipped:
        log_event("notice", message=line)
    checkpoint = found or empty
    return checkpoint, [step for step in checkpoints.steps(directory) if step > checkpoint.step]


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
