"""Training by blocks: the library's loop says when, the learner trains, and this file is where they meet."""

import dataclasses
import math
import time

import numpy as np

from exact_resume.checkpoints import checkpoints
from exact_resume.checkpoints.checkpoints import Checkpoint
from exact_resume.checkpoints.lease import LEASE_FILE
from exact_resume.events import log as event_log
from exact_resume.files import storage
from exact_resume.loop import Content, Loop, Schedule
from exact_resume.run_folder import RunFolder
from exact_resume.workers.signals import StopRequest
from exact_resume.workers.team import Team
from localvertex._base.userinput.errors import UserError
from trainer.checkpoints import exactness, starting_weights, variables
from trainer.checkpoints.exactness import Devices
from trainer.command_line import TrainingError
from trainer.data.examples import Examples
from trainer.data.sampler import Sampler
from trainer.learner.learner import Learner, Steps
from trainer.loop.warm_start import WarmStart
from trainer.models.metrics import ACCURACY

_NUM_ATTEMPTS = 10


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """The fixed part of a run."""

    folder: RunFolder
    """Checkpoint folder; the identity of the run is from `trainer.checkpoints.identity.identity`."""
    schedule: Schedule
    warm_start: WarmStart
    devices: Devices | None
    """The devices of an exact run; None for any other run."""
    rank: int
    """Place of this machine among those that train; the chief has 0."""
    num_workers: int


class LearnerLoop(Loop):
    """The loop of a learner, whose checkpoints also have digests of the batches, the devices and the loss scaling."""

    def __init__(self, run: Run, learner: Learner, sampler: Sampler) -> None:
        """Prepare; nothing is read or written."""
        super().__init__(run.schedule, rank=run.rank, num_workers=run.num_workers)
        self._run, self._learner, self._sampler = run, learner, sampler
        self.boundary(learner.fine_tuning_step)
        self.devices, self._digests = exactness.with_devices((), run.devices, 0), [np.zeros(0, np.uint64)]

    def copy(self) -> Content:
        """Return copies of all variables, in the learner's order."""
        done = self.digests
        return Content(
            arrays=variables.values(self._learner.variables()),
            extra={
                **({"devices": list(self.devices)} if self.devices else {}),
                "loss_scaling": self._learner.loss_scaling(),
                # A run that parameter servers trained in part has no exact order.
                "batch_digests": done if len(done) == self._learner.step else done[:0],
            },
        )

    def put(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint; log other devices, which --allow-other-devices allows."""
        self._learner.restore(checkpoint)
        extra = checkpoint.extra
        before = extra.get("devices", ())
        self._digests = [extra["batch_digests"]]
        self.devices = exactness.with_devices(before, self._run.devices, checkpoint.step)
        if len(self.devices) > 1 and len(self.devices) > len(before):
            described = exactness.describe_devices(self.devices)
            self._run.folder.notice(f"resumed on other devices, so the weights are not exact: {described}")

    @property
    def digests(self) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        """uint64 [step]: digests of the global batches so far."""
        self._digests = [np.concatenate(self._digests)]
        return self._digests[0]

    def epoch(self, step: int) -> dict[str, float]:
        """Return the field `epoch` of an event."""
        return {"epoch": step / self._sampler.steps_per_epoch}

    def note(self, steps: Steps, first_step: int, seconds: float) -> None:
        """Log the results of a block.

        Raises:
            TrainingError: The loss is not finite.
        """
        num_steps, learner = len(steps.losses), self._learner
        self._digests.append(steps.digests)
        if len(bad := np.flatnonzero(~np.isfinite(steps.losses))):
            raise TrainingError(
                f"the loss is {steps.losses[bad[0]]} in step {first_step + 1 + bad[0]} (of steps {first_step + 1} to"
                f" {first_step + num_steps}); lower the learning rate (now {learner.config.learning_rate:g}) or check"
                f" the data; the last checkpoint is from step {self.saved_step}"
            )
        self.log(
            loss=float(steps.losses.mean()),
            accuracy=float(steps.accuracies.mean()),
            images_per_second=num_steps * self._sampler.global_batch_size / seconds,
            learning_rate=float(learner.optimizer.learning_rate),
            **self.epoch(first_step + num_steps),
        )
        # Its seconds are those of the steps, not of what a validation begins with.
        self._end_block()


def train(
    run: Run,
    learner: Learner,
    training: Examples,
    validation: Examples,
    sampler: Sampler,
    *,
    team: Team,
    stop: StopRequest,
) -> None:
    """Train to the end, from the newest checkpoint. Each of several workers calls this.

    Args:
        run: The fixed part.
        learner: The changing part.
        training: The training split.
        validation: The validation split.
        sampler: Order of the training examples.
        team: The other workers.
        stop: Stop requests of this process.

    Raises:
        InputError: The checkpoint folder contains another run.
        UserError: A worker does not share the folder.
        TrainingError: The loss is not finite.
        RunError: The last checkpoint cannot be saved, or the best one was lost.
        Stopped: A stop was requested; the steps that are done are saved.
    """
    folder, loop = run.folder, LearnerLoop(run, learner, sampler)
    # 1. Restore weights, optimizer, step, best, digests. The data's order and all random numbers follow from the step.
    loop.begin(folder, team, stop)
    try:
        if not folder.is_chief:
            _refuse_unshared(folder.directory)
        if not loop.step and (taken := run.warm_start.apply(learner, folder.identity)):
            folder.notice(taken)
            if folder.is_chief:
                weights, source = folder.identity["weights"], run.warm_start.folder
                starting_weights.note_start(folder.directory, weights=weights, folder=source, taken=taken)
        batches = learner.batches(training, sampler, loop.num_steps)
        for block in loop.blocks():
            # 2. A block is one call of the graph. There are no steps if only a validation was interrupted.
            if block.num_steps:
                if learner.fine_tune(block.first_step):
                    text = "from this step on, the base is also trained"
                    folder.log_event("notice", message=text, fine_tuning_step=block.first_step)
                started = time.monotonic()
                steps = learner.train(batches, block.num_steps)
                loop.note(steps, block.first_step, time.monotonic() - started)
            # 3. Validate at the end of an epoch, before the save, so that the checkpoint knows whether it is the best.
            if loop.is_validation_due:
                score = learner.evaluate(validation, loop.validation_blocks)
                if not math.isfinite(score.loss):
                    raise TrainingError(
                        f"the validation loss after step {learner.step} is {score.loss}; lower the learning rate (now"
                        f" {learner.config.learning_rate:g}) or check the data"
                    )
                loop.score(accuracy=score.accuracy, loss=score.loss, score=score.score, metric=score.metric)
        # 4. result.json marks the run as finished, or names a lost best checkpoint; workers wait for it.
        if folder.is_chief:
            _write_result(loop, run, learner)
        loop.end()
    finally:
        loop.close()


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


def _write_result(loop: LearnerLoop, run: Run, learner: Learner) -> None:
    directory, identity = run.folder.directory, run.folder.identity
    images_per_second = event_log.steps_per_second(directory) * learner.config.global_batch_size
    loop.write_result(
        **({} if learner.config.metric == ACCURACY else {"metric": learner.config.metric}),
        weights_sha256=checkpoints.digest(variables.values(learner.variables())),
        images_per_second=images_per_second,
        images_per_second_per_device=images_per_second / learner.num_replicas,
        devices=list(loop.devices) or None,
        model=run.warm_start.describe(learner),
        started_from=starting_weights.start_of(directory, identity),
        batch_digests=[f"{int(digest):016x}" for digest in loop.digests],
    )
