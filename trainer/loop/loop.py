"""The training loop: restore, train, validate, save, finish. The whole story of a run is in `train`."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.checkpoints import checkpoints, result, variables
from trainer.checkpoints import interval as checkpoint_interval
from trainer.checkpoints.checkpoints import Best, Checkpoint
from trainer.checkpoints.lease import OWNER_FILE, Owner
from trainer.checkpoints.writer import CheckpointWriter, NoCheckpoints
from trainer.data.examples import Examples
from trainer.data.sampler import Sampler
from trainer.errors import TrainingError
from trainer.files import storage
from trainer.files.observers import Observer
from trainer.learner.learner import Learner, Steps
from trainer.loop.agreement import Agreement, Rounds
from trainer.loop.pace import Pace
from userinput.errors import UserError

_NUM_LOOKS = 10
WARM_UP_CALLS = 3
"""Graph calls of which the first traces and the second warms up; the third is as fast as the rest."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """What stays fixed during a run."""

    run_id: str
    identity: dict[str, Any]
    checkpoint_directory: str
    num_steps: int
    """Length of the whole run."""
    is_chief: bool = True
    """Whether this worker writes checkpoints and the result."""
    checkpoint_every_steps: int = 0
    """0: not by steps."""
    checkpoint_every_seconds: float | None = None
    """0: not by time; None: what `trainer.checkpoints.interval` finds best."""
    keep_checkpoints: int = 3


def train(
    run: Run, learner: Learner, training: Examples, validation: Examples, order: Sampler, *, agreement: Agreement,
    observe: Observer, warmed_up: Callable[[float], None] = lambda step_seconds: None,
) -> bool:  # fmt: skip
    """Train to the end, from wherever the newest checkpoint is. On several workers each calls this.

    Args:
        run: what stays fixed.
        learner: what changes.
        training: the training split.
        validation: the validation split.
        order: of the training examples.
        agreement: with the outside and with the other workers.
        observe: is told every event.
        warmed_up: called once with the seconds of a step, when the first calls have shown them; may change the speed.

    Returns:
        Whether the run is finished and result.json written; False if a stop was asked for (a checkpoint of that moment
        is committed).

    Raises:
        UserError: the checkpoint directory holds another run.
        TrainingError: the loss is not finite, or the last checkpoint cannot be saved.
    """
    # 1. Restore: weights, optimizer, step, best, digests. The data's place and all random numbers follow from the step.
    owner = Owner(run.checkpoint_directory) if run.is_chief else None
    restored = _restore(run, learner, agreement, observe)
    best, validated_step, digests = restored.best, restored.step * restored.is_validated, [restored.batch_digests]
    writer = _writer(run, owner, restored, observe)
    saved_at, pace, num_calls = time.monotonic(), Pace(), 0
    # 2. Batches from that step on.
    batches = learner.batches(training, order, run.num_steps)
    agreed = agreement.reach(pace)
    while True:
        step = learner.step
        is_end_of_epoch = step > 0 and (step % order.steps_per_epoch == 0 or step == run.num_steps)
        # 3. Validate at the end of an epoch, before the save, so that the checkpoint knows whether it is the best.
        improved, score = False, None
        if is_end_of_epoch and validated_step != step and not agreed.stop:
            if score := _validate(learner, validation, best, order, agreement, observe):
                improved, validated_step = best.is_beaten_by(score.accuracy, score.loss), step
            agreed = agreement.reach(pace)
        # 4. Save: the best must not be lost; otherwise when due. Whoever wants us to stop gets a save, too.
        is_last = agreed.stop or step == run.num_steps
        is_due = agreed.save or (_is_multiple(step, run.checkpoint_every_steps) and step != restored.step)
        if step > 0 and (improved or is_due or is_last):
            started = time.monotonic()
            # A save that failed took its best with it: only what is committed counts.
            if writer.settle(wait=True):
                best = writer.best
                improved = score is not None and best.is_beaten_by(score.accuracy, score.loss)
            if improved and score:
                best = score
            is_validated = validated_step == step or not is_end_of_epoch
            checkpoint = _take(run, learner, best, digests, is_validated=is_validated)
            writer.write(checkpoint, stood_still_seconds=time.monotonic() - started)
            saved_at = time.monotonic()
            agreement.saved()
        if is_last:
            break
        # 5. As many steps as fit into one call, but not beyond the next validation or save.
        num_steps = min(agreed.num_steps, _steps_to_next(run, order, step))
        started = time.monotonic()
        steps = learner.train(batches, num_steps)
        seconds = time.monotonic() - started
        pace.record(num_steps, seconds)
        digests.append(steps.digests)
        _refuse_infinite(steps, step, learner, writer)
        _tell_steps(steps, step, seconds, run, learner, order, observe)
        if (num_calls := num_calls + 1) == WARM_UP_CALLS:
            warmed_up(seconds / num_steps)
        # 6. Never two saves in flight.
        if writer.settle(wait=False):
            best = writer.best
        is_time = not writer.is_busy and time.monotonic() - saved_at >= _seconds_between_saves(run, writer)
        agreed = agreement.reach(pace, save_is_due=is_time)
    # 7. The last save cannot be missed: a full disk may have room again at every other.
    if error := writer.settle(wait=True):
        raise TrainingError(
            f"the checkpoint of step {learner.step} could not be saved ({error}); the last one is of step"
            f" {writer.saved_step}; make room and start again, it goes on there"
        )
    is_finished = learner.step == run.num_steps and validated_step == learner.step
    # 8. Finish: result.json is the word that the run is done; nobody leaves before it is written.
    if is_finished and run.is_chief:
        result.write(run.checkpoint_directory, run.run_id, run.identity, learner, best, np.concatenate(digests))
    agreement.meet()
    if not is_finished:
        saved = f"the checkpoint of step {step} is saved" if step else "there is nothing to save yet"
        observe("notice", message=f"{agreement.reason_to_stop}: stopped at step {step}; {saved}")
    return is_finished


def _restore(run: Run, learner: Learner, agreement: Agreement, observe: Observer) -> Checkpoint:
    """The newest intact checkpoint, as the chief finds it; one of step 0 if there is none."""
    started = time.monotonic()
    checkpoint = Checkpoint(step=0, best=Best(), identity=run.identity, run_id=run.run_id, arrays=[])
    if run.is_chief:
        storage.remove_partial(run.checkpoint_directory)
        found, passed_over = checkpoints.newest(run.checkpoint_directory)
        checkpoint = found or checkpoint
        for line in passed_over:
            observe("notice", message=line)
        checkpoints.remove_newer(run.checkpoint_directory, checkpoint.step)
    # Not each for itself: a checkpoint that is damaged later, or a folder that is not shared, would part them.
    step = agreement.of_chief(checkpoint.step)
    if not run.is_chief:
        _refuse_unshared(run.checkpoint_directory)
    if step and not run.is_chief:
        checkpoint = _load(run.checkpoint_directory, step)
    if step:
        checkpoints.refuse_other_run(checkpoint.identity, run.identity, run.checkpoint_directory)
        variables.assign(learner.variables(), checkpoint.arrays)
        learner.set_loss_scaling(checkpoint.loss_scaling)
        learner.step = step
        observe("restore", step=step, seconds=time.monotonic() - started)
    return checkpoint


def _refuse_unshared(directory: str) -> None:
    # What the chief has just written may take a moment to be seen through a mounted file system.
    for _ in range(_NUM_LOOKS):
        if storage.exists(storage.join(directory, OWNER_FILE)):
            return
        time.sleep(1.0)
    raise UserError(
        f"{directory!r} does not have what the chief wrote there: it is another folder; give all workers one"
        " --checkpoint-directory that they share"
    )


def _load(directory: str, step: int) -> Checkpoint:
    try:
        return checkpoints.load(directory, step)
    except checkpoints.TornCheckpoint as error:
        raise UserError(
            f"the chief goes on at {checkpoints.name(step)} of {directory!r}, which is not there for this worker"
            f" ({error}); give all workers one --checkpoint-directory that they share"
        ) from error


def _writer(run: Run, owner: Owner | None, restored: Checkpoint, observe: Observer) -> NoCheckpoints:
    if owner is None:
        return NoCheckpoints(best=restored.best, saved_step=restored.step)
    return CheckpointWriter(
        run.checkpoint_directory, owner, keep=run.keep_checkpoints, best=restored.best, saved_step=restored.step,
        observe=observe,
    )  # fmt: skip


def _validate(
    learner: Learner, validation: Examples, best: Best, order: Sampler, agreement: Agreement, observe: Observer
) -> Best | None:
    """The score of the present step; None if a stop was asked for."""
    started = time.monotonic()
    score = learner.evaluate(validation, Rounds(agreement))
    if score is None:
        return None
    if not math.isfinite(score.loss):
        raise TrainingError(
            f"the validation loss after step {learner.step} is {score.loss}; lower the learning rate (now"
            f" {learner.config.learning_rate:g}) or look at the data"
        )
    observe(
        "evaluate", split="validation", step=learner.step, epoch=learner.step / order.steps_per_epoch, loss=score.loss,
        accuracy=score.accuracy, is_best=best.is_beaten_by(score.accuracy, score.loss),
        seconds=time.monotonic() - started,
    )  # fmt: skip
    return Best(step=learner.step, accuracy=score.accuracy, loss=score.loss)


def _take(
    run: Run, learner: Learner, best: Best, digests: list[npt.NDArray[np.uint64]], *, is_validated: bool
) -> Checkpoint:
    """Copy what a checkpoint holds; on a worker that is not the chief, nothing."""
    arrays = variables.values(learner.variables()) if run.is_chief else []
    return Checkpoint(
        step=learner.step, best=best, identity=run.identity, run_id=run.run_id, arrays=arrays,
        batch_digests=np.concatenate(digests), is_validated=is_validated, loss_scaling=learner.loss_scaling(),
    )  # fmt: skip


def _refuse_infinite(steps: Steps, step: int, learner: Learner, writer: NoCheckpoints) -> None:
    bad = np.flatnonzero(~np.isfinite(steps.losses))
    if len(bad):
        writer.settle(wait=True)
        raise TrainingError(
            f"the loss is {steps.losses[bad[0]]} in step {step + 1 + bad[0]} (of steps {step + 1} to"
            f" {step + len(steps.losses)}); lower the learning rate (now {learner.config.learning_rate:g}) or look at"
            f" the data; the last checkpoint is of step {writer.saved_step}"
        )


def _tell_steps(
    steps: Steps, step: int, seconds: float, run: Run, learner: Learner, order: Sampler, observe: Observer
) -> None:
    num_steps = len(steps.losses)
    observe(
        "steps", first_step=step + 1, last_step=step + num_steps, num_steps=run.num_steps,
        loss=float(steps.losses.mean()), accuracy=float(steps.accuracies.mean()), seconds=seconds,
        images_per_second=num_steps * order.global_batch_size / seconds,
        learning_rate=float(learner.optimizer.learning_rate), epoch=(step + num_steps) / order.steps_per_epoch,
    )  # fmt: skip


def _steps_to_next(run: Run, order: Sampler, step: int) -> int:
    """Steps to the next place where something else comes: the end of the epoch or of the run, or a save by steps."""
    every = run.checkpoint_every_steps or run.num_steps
    ends = (run.num_steps, (step // order.steps_per_epoch + 1) * order.steps_per_epoch, (step // every + 1) * every)
    return min(ends) - step


def _is_multiple(step: int, every: int) -> bool:
    return every > 0 and step % every == 0


def _seconds_between_saves(run: Run, writer: NoCheckpoints) -> float:
    if run.checkpoint_every_seconds is None:
        return checkpoint_interval.seconds(writer.save_seconds)
    return run.checkpoint_every_seconds or math.inf
