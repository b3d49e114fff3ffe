"""The training loop: restore, train, validate, save, finish. The whole story of a run is in `train`."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from trainer import checkpoints, events, run_identity, storage, variables
from trainer.batches import Examples, Order
from trainer.checkpoints import Best, Checkpoint
from trainer.errors import TrainingError
from trainer.learner import Learner
from trainer.pace import Pace
from trainer.signals import StopRequest

Observer = Callable[..., None]
"""Called as observer(event, **fields); the events and their fields are those of docs/events.md."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """What stays fixed during a run."""

    run_id: str
    identity: dict[str, Any]
    checkpoint_directory: str
    num_steps: int
    """Length of the whole run."""
    checkpoint_every_steps: int = 0
    """0: not by steps."""
    checkpoint_every_seconds: float = 60.0
    """0: not by time."""
    keep_checkpoints: int = 3


def train(
    run: Run,
    learner: Learner,
    training: Examples,
    validation: Examples,
    order: Order,
    *,
    observe: Observer,
    stop: StopRequest,
) -> dict[str, Any] | None:
    """Train to the end, from wherever the newest checkpoint is.

    Returns:
        The content of result.json; None if a stop was asked for (a checkpoint of that moment is committed).

    Raises:
        UserError: the checkpoint directory holds another run.
        TrainingError: the loss is not finite.
    """
    # 1. Restore: weights, optimizer, seed state, step and best. The data's place follows from the step.
    best = _restore(run, learner, observe)
    saved_step, saved_at = learner.step, time.monotonic()
    # 2. Batches from that step on.
    batches = learner.batches(training, order, run.num_steps)
    pace = Pace()
    while learner.step < run.num_steps and not stop.is_set:
        # 3. As many steps as fit into one call, but not beyond the next validation or save.
        step = learner.step
        epoch_end = (step // order.steps_per_epoch + 1) * order.steps_per_epoch
        num_steps = pace.next(min(run.num_steps, epoch_end, _next_save(run, step)) - step)
        started = time.monotonic()
        loss, accuracy = (float(total) / num_steps for total in learner.train(batches, tf.constant(num_steps)))
        seconds = time.monotonic() - started
        pace.record(num_steps, seconds)
        if not math.isfinite(loss):
            raise TrainingError(
                f"the loss is {loss} somewhere in steps {step + 1} to {learner.step}; lower the learning rate"
                f" (now {learner.config.learning_rate:g}) or look at the data; the last checkpoint is of step"
                f" {saved_step}"
            )
        observe(
            "steps", first_step=step + 1, last_step=learner.step, num_steps=run.num_steps, loss=loss, accuracy=accuracy,
            seconds=seconds, images_per_second=num_steps * order.global_batch_size / seconds,
            learning_rate=float(learner.optimizer.learning_rate), epoch=learner.step / order.steps_per_epoch,
        )  # fmt: skip
        # 4. Validate at the end of an epoch; before the save, so that the checkpoint knows whether it is the best.
        candidate = best
        if learner.step in (epoch_end, run.num_steps):
            candidate = _validate(learner, validation, best, order, observe)
        improved = candidate is not best
        # 5. Save: the best must not be lost; otherwise when due. Whoever wants us to stop gets a save too.
        due = learner.step == _next_save(run, step) or time.monotonic() - saved_at >= _seconds_between_saves(run)
        last = stop.is_set or learner.step == run.num_steps
        if improved or due or last:
            try:
                _save(run, learner, candidate, observe)
                best, saved_step = candidate, learner.step
            except OSError as error:
                # A full disk may have room again at the next save; only the last save cannot be missed.
                _tell_failed_save(error, learner.step, saved_step, observe, is_last=last)
            saved_at = time.monotonic()
    if stop.is_set and learner.step < run.num_steps:
        saved = f"the checkpoint of step {saved_step} is saved" if saved_step else "there is nothing to save yet"
        observe("notice", message=f"{stop.signal_name}: stopped at step {learner.step}; {saved}")
        return None
    # 6. Finish: result.json is the word that the run is done.
    return _finish(run, learner, best, order)


def _restore(run: Run, learner: Learner, observe: Observer) -> Best:
    started = time.monotonic()
    storage.remove_partial(run.checkpoint_directory)
    checkpoint, passed_over = checkpoints.newest(run.checkpoint_directory)
    for line in passed_over:
        observe("notice", message=line)
    if checkpoint is None:
        return Best()
    checkpoints.refuse_other_run(checkpoint.identity, run.identity, run.checkpoint_directory)
    variables.assign(learner.variables(), checkpoint.arrays)
    learner.step = checkpoint.step
    observe("restore", step=checkpoint.step, seconds=time.monotonic() - started)
    return checkpoint.best


def _validate(learner: Learner, validation: Examples, best: Best, order: Order, observe: Observer) -> Best:
    started = time.monotonic()
    score = learner.evaluate(validation)
    improved = best.is_beaten_by(score.accuracy, score.loss)
    observe(
        "evaluate", split="validation", step=learner.step, epoch=learner.step / order.steps_per_epoch, loss=score.loss,
        accuracy=score.accuracy, is_best=improved, seconds=time.monotonic() - started,
    )  # fmt: skip
    return Best(step=learner.step, accuracy=score.accuracy, loss=score.loss) if improved else best


def _tell_failed_save(error: OSError, step: int, saved_step: int, observe: Observer, *, is_last: bool) -> None:
    line = f"the checkpoint of step {step} could not be saved ({error}); the last one is of step {saved_step}"
    if is_last:
        raise TrainingError(f"{line}; make room and start again, it goes on there") from error
    observe("notice", message=f"{line}; going on")


def _save(run: Run, learner: Learner, best: Best, observe: Observer) -> None:
    started = time.monotonic()
    arrays = variables.values(learner.variables())
    checkpoint = Checkpoint(step=learner.step, best=best, identity=run.identity, run_id=run.run_id, arrays=arrays)
    checkpoints.save(run.checkpoint_directory, checkpoint)
    checkpoints.prune(run.checkpoint_directory, keep=run.keep_checkpoints, best_step=best.step)
    observe(
        "save", step=learner.step, seconds=time.monotonic() - started, num_bytes=sum(array.nbytes for array in arrays)
    )


def _finish(run: Run, learner: Learner, best: Best, order: Order) -> dict[str, Any]:
    history = events.read(run.checkpoint_directory)
    step_events = [event for event in history if event["event"] == "steps"]
    seconds = sum(event["seconds"] for event in step_events)
    images = sum((e["last_step"] - e["first_step"] + 1) * order.global_batch_size for e in step_events)
    num_devices = learner.distribution_strategy.num_replicas_in_sync
    result = {
        "run_id": run.run_id,
        "identity": run.identity,
        "final_step": learner.step,
        "best_step": best.step,
        "best_checkpoint": checkpoints.name(best.step),
        "validation_accuracy": best.accuracy,
        "validation_loss": best.loss,
        "weights_sha256": checkpoints.digest(variables.values(learner.variables())),
        "images_per_second": images / max(seconds, 1e-9),
        "images_per_second_per_device": images / max(seconds, 1e-9) / num_devices,
        "num_restarts": sum(event["event"] == "start" for event in history) - 1,
    }
    storage.write_json(f"{run.checkpoint_directory.rstrip('/')}/{run_identity.RESULT_FILE}", result)
    return result


def _next_save(run: Run, step: int) -> int:
    """The step of the next save by steps, after `step`."""
    every = run.checkpoint_every_steps
    return (step // every + 1) * every if every else run.num_steps


def _seconds_between_saves(run: Run) -> float:
    return run.checkpoint_every_seconds or math.inf
