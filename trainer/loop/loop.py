"""The training loop: restore, train, validate, save, finish. The whole story of a run is in `train` and `_train`."""

import contextlib
import dataclasses
import math
import time

import numpy as np
import numpy.typing as npt

from exact_resume.checkpoints import checkpoints, result_file
from exact_resume.checkpoints.async_writer import CheckpointWriter
from exact_resume.checkpoints.checkpoints import Best, Checkpoint
from exact_resume.errors import RunError
from exact_resume.events import log as event_log
from exact_resume.events.observers import Observer
from exact_resume.run_folder import RunFolder
from exact_resume.workers.team import Pace
from trainer.checkpoints import exactness, starting_weights, variables
from trainer.checkpoints.exactness import Devices
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

    folder: RunFolder
    """Checkpoint folder; the identity of the run is from `trainer.checkpoints.identity.identity`."""
    num_steps: int
    """Planned length of the whole run."""
    early_stopping: EarlyStopping
    """When the run ends early."""
    checkpoint_every_steps: int
    """0: not by steps."""
    checkpoint_every_seconds: float | None
    """0: not by time; None: what `exact_resume.checkpoints.async_writer.best_interval` returns."""
    keep_checkpoints: int
    warm_start: WarmStart
    devices: Devices | None
    """The devices of an exact run; None for any other run."""


def train(
    run: Run,
    learner: Learner,
    training: Examples,
    validation: Examples,
    sampler: Sampler,
    *,
    sync: WorkerSync,
) -> bool:
    """Train to the end, from the newest checkpoint. Each of several workers calls this.

    Args:
        run: The fixed part.
        learner: The changing part.
        training: The training split.
        validation: The validation split.
        sampler: Order of the training examples.
        sync: Synchronisation with the other workers, and stop requests.

    Returns:
        Whether the run is finished and result.json written; False after a stop request, which also triggers a save.

    Raises:
        InputError: The checkpoint folder contains another run.
        TrainingError: The loss is not finite, or the best checkpoint was lost.
        RunError: The last checkpoint cannot be saved.
    """
    # 1. Restore weights, optimizer, step, best, digests. The data's order and all random numbers follow from the step.
    folder = run.folder
    empty = Checkpoint(step=0, best=Best(), identity=folder.identity, run_id=folder.run_id, arrays=[])
    found = restore(learner, sync, folder, empty)
    restored = dataclasses.replace(found, devices=_devices(run, found))
    writer = folder.writer(best=restored.best, saved_step=restored.step, keep=run.keep_checkpoints)
    with contextlib.closing(writer):
        if not restored.step and (taken := run.warm_start.apply(learner, folder.identity)):
            folder.notice(taken)
            if folder.is_chief:
                weights, source = folder.identity["weights"], run.warm_start.folder
                starting_weights.note_start(folder.directory, weights=weights, folder=source, taken=taken)
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
                if score := _validate(run, learner, validation, best, sampler, sync):
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
                folder.log_event("notice", message="from this step on, the base is trained, too", fine_tuning_step=step)
            num_steps = min(decision.num_steps, _steps_to_next(run, sampler, step, learner.fine_tuning_step))
            started = time.monotonic()
            steps = learner.train(batches, num_steps)
            seconds = time.monotonic() - started
            pace.record(num_steps, seconds)
            digests.append(steps.digests)
            _refuse_infinite(steps, step, learner, writer)
            _log_steps(steps, step, seconds, run, learner, sampler)
            # 6. Synchronise; a save by time waits until the previous one is written.
            writer.settle(wait=False)
            is_time = writer.is_time(saved_at, run.checkpoint_every_seconds)
            decision = sync.decide(pace, save_is_due=is_time)
        # 7. The last save must succeed; after any other, a full disk may have space again by the next one.
        is_finished = (step == run.num_steps or decision.ends_early) and validated_step == step
        try:
            writer.finish()
        except RunError:
            # After a stop request, it is retried by training from the save before.
            if is_finished or not decision.stop:
                raise
        if is_finished and step < run.num_steps:
            folder.notice(f"stopped early at step {step}: {run.early_stopping.describe()}")
        # 8. Finish: result.json marks the run as finished, or names a lost best checkpoint; workers wait for it.
        kept = best
        if is_finished and folder.is_chief:
            kept = checkpoints.best_kept(folder.directory, best, history)
            _write_result(run, learner, best, kept, digests, restored.devices)
        if sync.value_of_chief(int(kept != best)):
            message = result_file.lost_best_message(best.step)
            folder.notice(message)
            raise TrainingError(message)
        if not is_finished:
            saved_step = sync.value_of_chief(writer.saved_step)
            saved = f"the checkpoint of step {saved_step} is saved" if saved_step else "there is nothing to save yet"
            folder.notice(f"{sync.reason_to_stop}: stopped at step {step}; {saved}")
        return is_finished


def _devices(run: Run, restored: Checkpoint) -> tuple[Devices, ...]:
    """Return the record of the run's devices; log a change, which requires --allow-other-devices."""
    devices = exactness.with_devices(restored.devices, run.devices, restored.step)
    if len(devices) > 1 and len(devices) > len(restored.devices):
        described = exactness.describe_devices(devices)
        run.folder.notice(f"resumed on other devices, so the weights are not exact: {described}")
    return devices


def _validate(
    run: Run, learner: Learner, validation: Examples, best: Best, sampler: Sampler, sync: WorkerSync
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
    return log_score(score, learner.step, best, sampler, started, run.folder.log_event)


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
    arrays = variables.values(learner.variables()) if run.folder.is_chief else []
    done = np.concatenate(digests)
    return Checkpoint(
        step=learner.step,
        best=best,
        identity=run.folder.identity,
        run_id=run.folder.run_id,
        arrays=arrays,
        # A run that parameter servers trained in part has no exact order.
        batch_digests=done if len(done) == learner.step else done[:0],
        is_validated=is_validated,
        validations=history,
        devices=devices,
        loss_scaling=learner.loss_scaling(),
    )


def _write_result(
    run: Run, learner: Learner, best: Best, kept: Best, digests: _Digests, devices: tuple[Devices, ...]
) -> None:
    directory, identity = run.folder.directory, run.folder.identity
    images_per_second = event_log.steps_per_second(directory) * learner.config.global_batch_size
    result_file.write(
        directory,
        run_id=run.folder.run_id,
        identity=identity,
        final_step=learner.step,
        stop_reason=run.early_stopping.describe() if learner.step < run.num_steps else "all planned steps are done",
        best_step=kept.step,
        fence=run.folder.lease.fence,
        num_planned_steps=run.num_steps,
        lost_best_step=best.step if kept != best else None,
        validation_accuracy=kept.accuracy,
        validation_loss=kept.loss,
        **({"metric": learner.config.metric, "score": kept.score} if kept.score is not None else {}),
        weights_sha256=checkpoints.digest(variables.values(learner.variables())),
        images_per_second=images_per_second,
        images_per_second_per_device=images_per_second / learner.num_replicas,
        devices=list(devices) or None,
        model=run.warm_start.describe(learner),
        started_from=starting_weights.start_of(directory, identity),
        batch_digests=[f"{int(digest):016x}" for digest in np.concatenate(digests)],
    )


def _refuse_infinite(steps: Steps, step: int, learner: Learner, writer: CheckpointWriter) -> None:
    bad = np.flatnonzero(~np.isfinite(steps.losses))
    if len(bad):
        writer.settle(wait=True)
        raise TrainingError(
            f"the loss is {steps.losses[bad[0]]} in step {step + 1 + bad[0]} (of steps {step + 1} to"
            f" {step + len(steps.losses)}); lower the learning rate (now {learner.config.learning_rate:g}) or check the"
            f" data; the last checkpoint is from step {writer.saved_step}"
        )


def _log_steps(steps: Steps, step: int, seconds: float, run: Run, learner: Learner, sampler: Sampler) -> None:
    num_steps = len(steps.losses)
    run.folder.log_event(
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
