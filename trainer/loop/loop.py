"""The training loop: restore, train, validate, save, finish. The whole story of a run is in `train` and `_train`."""

import contextlib
import dataclasses
import math
import time
from typing import Any

import numpy as np
import numpy.typing as npt

from exact_resume.checkpoints import checkpoints, exactness, outcome, result_file
from exact_resume.checkpoints.async_writer import Checkpointing, best_interval
from exact_resume.checkpoints.checkpoints import Best, Checkpoint
from exact_resume.checkpoints.exactness import Devices
from exact_resume.checkpoints.lease import Lease
from exact_resume.events.observers import Observer
from exact_resume.workers.team import Pace
from trainer.checkpoints import starting_weights, variables
from trainer.command_line import TrainingError
from trainer.data.examples import Examples
from trainer.data.sampler import Sampler
from trainer.learner.learner import Learner, Score, Steps
from trainer.loop.early_stopping import EarlyStopping, Validations, with_score
from trainer.loop.restore import restore
from trainer.loop.warm_start import WarmStart
from trainer.loop.worker_sync import EvaluationRounds, WorkerSync

_Digests = list[npt.NDArray[np.uint64]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """The fixed part of a run."""

    run_id: str
    identity: dict[str, Any]
    """Identity of the run, from `trainer.checkpoints.identity.identity`."""
    checkpoint_directory: str
    num_steps: int
    """Planned length of the whole run."""
    early_stopping: EarlyStopping = dataclasses.field(default_factory=EarlyStopping)
    """When the run ends early."""
    lease: Lease | None
    """The right to write checkpoints and the result; only the chief has one."""
    checkpoint_every_steps: int = 0
    """0: not by steps."""
    checkpoint_every_seconds: float | None = None
    """0: not by time; None: what `exact_resume.checkpoints.async_writer.best_interval` returns."""
    keep_checkpoints: int = 3
    warm_start: WarmStart = dataclasses.field(default_factory=WarmStart)
    devices: Devices | None = None
    """The devices of an exact run; None for any other run."""


def train(
    run: Run,
    learner: Learner,
    training: Examples,
    validation: Examples,
    sampler: Sampler,
    *,
    sync: WorkerSync,
    log_event: Observer,
) -> bool:
    """Train to the end, from the newest checkpoint. Each of several workers calls this.

    Args:
        run: The fixed part.
        learner: The changing part.
        training: The training split.
        validation: The validation split.
        sampler: Order of the training examples.
        sync: Synchronisation with the other workers, and stop requests.
        log_event: Receives every event.

    Returns:
        Whether the run is finished and result.json written; False after a stop request, which also triggers a save.

    Raises:
        InputError: The checkpoint folder contains another run.
        TrainingError: The loss is not finite, or the last checkpoint cannot be saved.
    """
    # 1. Restore weights, optimizer, step, best, digests. The data's order and all random numbers follow from the step.
    empty = Checkpoint(step=0, best=Best(), identity=run.identity, run_id=run.run_id, arrays=[])
    found = restore(learner, sync, run.checkpoint_directory, empty, lease=run.lease, log_event=log_event)
    restored = dataclasses.replace(found.checkpoint, devices=_devices(run, found.checkpoint, log_event))
    writer = found.writer(run.checkpoint_directory, keep=run.keep_checkpoints, log_event=log_event)
    with contextlib.closing(writer):
        if not restored.step and (taken := run.warm_start.apply(learner, run.identity)):
            log_event("notice", message=taken)
            if run.lease:
                weights, folder = run.identity["weights"], run.warm_start.folder
                starting_weights.note_start(run.checkpoint_directory, weights=weights, folder=folder, taken=taken)
        best, validated_step, digests = restored.best, restored.step * restored.is_validated, [restored.batch_digests]
        saved_at, pace = time.monotonic(), Pace()
        # 2. Batches from that step on.
        batches = learner.batches(training, sampler, run.num_steps)
        history = restored.validations
        decision = sync.decide(pace, ends_early=run.early_stopping.is_due(history, learner.fine_tuning_step))
        while True:
            step = learner.step
            is_end_of_epoch = step > 0 and (step % sampler.steps_per_epoch == 0 or step == run.num_steps)
            # 3. Validate at the end of an epoch, before the save, so that the checkpoint knows whether it is the best.
            improved, score = False, None
            if is_end_of_epoch and validated_step != step and not decision.stop:
                if score := _validate(learner, validation, best, sampler, sync, log_event):
                    improved, validated_step = best.is_beaten_by(score.value, score.loss), step
                    history = with_score(history, score)
                decision = sync.decide(pace, ends_early=run.early_stopping.is_due(history, learner.fine_tuning_step))
            # 4. Save the best at once, otherwise when a save is due. A stop request also triggers a save.
            is_last = decision.stop or decision.ends_early or step == run.num_steps
            is_step = step % (run.checkpoint_every_steps or run.num_steps) == 0
            is_due = decision.save or (is_step and step != restored.step)
            if step > 0 and (improved or is_due or is_last):
                started = time.monotonic()
                # Even if this save fails, the scores alone determine the best step.
                writer.settle(wait=True)
                if improved and score:
                    best = score
                is_validated = validated_step == step or not is_end_of_epoch
                checkpoint = _take(run, learner, best, history, digests, restored.devices, is_validated=is_validated)
                writer.write(checkpoint, pause_seconds=time.monotonic() - started)
                saved_at = time.monotonic()
                sync.note_save()
            if is_last:
                break
            # 5. Train as many steps as fit into one call, but not beyond the next validation, save or phase.
            if learner.fine_tune(step):
                log_event("notice", message="from this step on, the base is trained, too", fine_tuning_step=step)
            num_steps = min(decision.num_steps, _steps_to_next(run, sampler, step, learner.fine_tuning_step))
            started = time.monotonic()
            steps = learner.train(batches, num_steps)
            seconds = time.monotonic() - started
            pace.record(num_steps, seconds)
            digests.append(steps.digests)
            _refuse_infinite(steps, step, learner, writer)
            _log_steps(steps, step, seconds, run, learner, sampler, log_event)
            # 6. Synchronise; a save by time waits until the previous one is written.
            writer.settle(wait=False)
            is_time = not writer.is_busy and time.monotonic() - saved_at >= _seconds_between_saves(run, writer)
            decision = sync.decide(pace, save_is_due=is_time)
        # 7. The last save must succeed; after any other, a full disk may have space again by the next one.
        if error := writer.finish():
            raise TrainingError(
                f"the checkpoint of step {learner.step} could not be saved ({error}); free some space and run again to"
                f" resume from step {writer.saved_step}"
            )
        is_finished = (step == run.num_steps or decision.ends_early) and validated_step == step
        if is_finished and step < run.num_steps:
            log_event("notice", message=f"stopped early at step {step}: {run.early_stopping.describe()}")
        # 8. Finish: result.json marks the run as finished, or names a lost best checkpoint; workers wait for it.
        kept = best
        if is_finished and run.lease:
            kept = checkpoints.best_kept(run.checkpoint_directory, best, history)
            _write_result(run, run.lease, learner, best, kept, digests, restored.devices)
        if sync.value_of_chief(int(kept != best)):
            message = result_file.lost_best_message(best.step)
            log_event("notice", message=message)
            raise TrainingError(message)
        if not is_finished:
            saved = f"the checkpoint of step {step} is saved" if step else "there is nothing to save yet"
            log_event("notice", message=f"{sync.reason_to_stop}: stopped at step {step}; {saved}")
        return is_finished


def _devices(run: Run, restored: Checkpoint, log_event: Observer) -> tuple[Devices, ...]:
    """Return the record of the run's devices; log a change, which requires --allow-other-devices."""
    devices = exactness.with_devices(restored.devices, run.devices, restored.step)
    if len(devices) > 1 and len(devices) > len(restored.devices):
        message = f"resumed on other devices, so the weights are not exact: {exactness.describe_devices(devices)}"
        log_event("notice", message=message)
    return devices


def _validate(
    learner: Learner, validation: Examples, best: Best, sampler: Sampler, sync: WorkerSync, log_event: Observer
) -> Best | None:
    """Return the score of the present step; None if a stop was requested."""
    started = time.monotonic()
    score = learner.evaluate(validation, EvaluationRounds(sync))
    if score is None:
        return None
    if not math.isfinite(score.loss):
        raise TrainingError(
            f"the validation loss after step {learner.step} is {score.loss}; lower the learning rate (now"
            f" {learner.config.learning_rate:g}) or check the data"
        )
    return log_score(score, learner.step, best, sampler, started, log_event)


def log_score(score: Score, step: int, best: Best, sampler: Sampler, started: float, log_event: Observer) -> Best:
    """Log the score of a step, and return it.

    Args:
        score: Of the validation split.
        step: The step.
        best: The best score before.
        sampler: Knows the steps of an epoch.
        started: Time of `time.monotonic` before the validation.
        log_event: Receives the event.
    """
    found = Best(step=step, accuracy=score.accuracy, loss=score.loss, score=score.score)
    log_event(
        "evaluate",
        split="validation",
        step=step,
        epoch=step / sampler.steps_per_epoch,
        **score.fields(),
        is_best=best.is_beaten_by(found.value, found.loss),
        seconds=time.monotonic() - started,
    )
    return found


def _take(
    run: Run,
    learner: Learner,
    best: Best,
    history: Validations,
    digests: _Digests,
    devices: tuple[Devices, ...],
    *,
    is_validated: bool,
) -> Checkpoint:
    """Return a checkpoint of the present step; only the chief copies the variables."""
    arrays = variables.values(learner.variables()) if run.lease else []
    done = np.concatenate(digests)
    return Checkpoint(
        step=learner.step,
        best=best,
        identity=run.identity,
        run_id=run.run_id,
        arrays=arrays,
        # A run that parameter servers trained in part has no exact order.
        batch_digests=done if len(done) == learner.step else done[:0],
        is_validated=is_validated,
        validations=history,
        devices=devices,
        loss_scaling=learner.loss_scaling(),
    )


def _write_result(
    run: Run, lease: Lease, learner: Learner, best: Best, kept: Best, digests: _Digests, devices: tuple[Devices, ...]
) -> None:
    outcome.write_result(
        run.checkpoint_directory,
        run_id=run.run_id,
        run_identity=run.identity,
        global_batch_size=learner.config.global_batch_size,
        metric=learner.config.metric,
        final_step=learner.step,
        num_planned_steps=run.num_steps,
        stop_reason=run.early_stopping.describe() if learner.step < run.num_steps else "all planned steps are done",
        best=kept,
        lost_best_step=best.step if kept != best else None,
        weights_sha256=checkpoints.digest(variables.values(learner.variables())),
        batch_digests=np.concatenate(digests),
        num_devices=learner.num_replicas,
        model=run.warm_start.describe(learner),
        fence=lease.fence,
        devices=devices,
        started_from=starting_weights.start_of(run.checkpoint_directory, run.identity),
    )


def _refuse_infinite(steps: Steps, step: int, learner: Learner, writer: Checkpointing) -> None:
    bad = np.flatnonzero(~np.isfinite(steps.losses))
    if len(bad):
        writer.settle(wait=True)
        raise TrainingError(
            f"the loss is {steps.losses[bad[0]]} in step {step + 1 + bad[0]} (of steps {step + 1} to"
            f" {step + len(steps.losses)}); lower the learning rate (now {learner.config.learning_rate:g}) or check the"
            f" data; the last checkpoint is from step {writer.saved_step}"
        )


def _log_steps(
    steps: Steps, step: int, seconds: float, run: Run, learner: Learner, sampler: Sampler, log_event: Observer
) -> None:
    num_steps = len(steps.losses)
    log_event(
        "steps",
        first_step=step + 1,
        last_step=step + num_steps,
        num_steps=run.num_steps,
        loss=float(steps.losses.mean()),
        accuracy=float(steps.accuracies.mean()),
        seconds=seconds,
        images_per_second=num_steps * sampler.global_batch_size / seconds,
        learning_rate=float(learner.optimizer.learning_rate),
        epoch=(step + num_steps) / sampler.steps_per_epoch,
    )


def _steps_to_next(run: Run, sampler: Sampler, step: int, boundary: int) -> int:
    """Return the number of steps to the end of the epoch, first phase or run, or to the next save by steps."""
    every, epoch = run.checkpoint_every_steps or run.num_steps, sampler.steps_per_epoch
    end = boundary if step < boundary else run.num_steps
    return min(end, (step // epoch + 1) * epoch, (step // every + 1) * every) - step


def _seconds_between_saves(run: Run, writer: Checkpointing) -> float:
    if run.checkpoint_every_seconds is None:
        return best_interval(writer.pause_seconds)
    return run.checkpoint_every_seconds or math.inf
