"""Puts a training together from its parts, in the role that the cluster gives this process."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import os
import re
import sys
import threading
from typing import Any, NoReturn

import tensorflow as tf

from trainer.checkpoints import identity as run_identity
from trainer.cluster import distribution, notices
from trainer.cluster.cluster import Cluster
from trainer.cluster.signals import StopRequest
from trainer.cluster.watchdog import Watchdog, abort
from trainer.config import TrainConfig
from trainer.data.dataset import Dataset
from trainer.data.examples import Examples, load_split
from trainer.data.sampler import Sampler, block_size
from trainer.files import event_log as events
from trainer.files import observers, storage
from trainer.files.observers import Observer
from trainer.learner import precision
from trainer.learner.learner import Learner
from trainer.loop import evaluator, loop, parameter_servers, speed
from trainer.loop.agreement import Agreement
from userinput.errors import UserError

EXIT_LOST_PEER = 134
"""As of SIGABRT: the one code that the service documents as worth a restart."""
_LOST_PEER = (tf.errors.UnavailableError, tf.errors.DeadlineExceededError)
"""What a collective ends with when another worker is gone or frozen; others do if they speak of it."""
_SPEAKS_OF_PEERS = re.compile(r"collective|coordination|heartbeat|peer|connection|/job:|socket", re.IGNORECASE)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Training:
    """One process of a run."""

    options: argparse.Namespace
    """Of `trainer.flags`."""
    config: TrainConfig
    data: Dataset
    run_id: str
    identity: dict[str, Any]
    directory: str
    """Checkpoint directory."""
    cluster: Cluster
    stop: StopRequest

    def run(self) -> int:
        """Do this process' part; its exit code."""
        watchdog = Watchdog(self.options.watchdog_seconds)
        distribution.split_cpu(self.options.logical_cpu_devices)
        if self.options.exact:
            tf.config.experimental.enable_op_determinism()
        # Listens from the start: building and tracing take longer than the 30 seconds that a notice may give.
        observe, exit_code, _ = self._observer(watchdog), 1, self._watcher
        seen: set[str] = set()
        observe = observers.all_of([observe, lambda event, **fields: seen.add(event)])
        try:
            exit_code = self._role(observe, watchdog)
        except UserError:
            exit_code = 2
            raise
        except tf.errors.OpError as error:
            is_lost = isinstance(error, _LOST_PEER) or _SPEAKS_OF_PEERS.search(str(error.message))
            if self.cluster.num_workers == 1 or not is_lost:
                raise
            self._leave(error, observe)
        finally:
            watchdog.close()
            self._watcher.close()
            # A mistake that was found before anything began leaves nothing behind.
            if "start" in seen:
                observe("exit", code=exit_code)
        return exit_code

    def _role(self, observe: Observer, watchdog: Watchdog) -> int:
        if self.cluster.is_evaluator:
            return evaluator.run(self, observe, watchdog)
        if self.cluster.strategy == "parameter-server":
            return parameter_servers.run(self, observe, watchdog)
        return self._train(observe, watchdog)

    def _train(self, observe: Observer, watchdog: Watchdog) -> int:
        learner = self.learner(distribution.make(self.cluster))
        # Several workers: TensorFlow has put a SIGTERM handler of its own over ours.
        self.stop.install()
        order, run = self.order(), self.loop_run()
        if order.global_batch_size < learner.num_replicas:
            raise UserError(
                f"global_batch_size={order.global_batch_size} is less than the {learner.num_replicas} devices; give at"
                f" least {learner.num_replicas}, or fewer devices"
            )
        if self.options.xla == "on":
            learner.use_xla(True)
        self.tell_start(learner.num_replicas, observe)
        training, validation = self.load("train", observe), self.load("validation", observe)
        agreement = Agreement(
            learner.add_up, is_chief=self.cluster.is_chief, stop=self.stop, notices=self.hear_notices,
            watchdog=watchdog, observe=observe,
        )  # fmt: skip
        warmed_up = speed.FirstSteps(
            learner, training, order, num_steps=run.num_steps, observe=observe,
            try_xla=self.options.xla == "auto" and not self.options.exact,
        )  # fmt: skip
        is_finished = loop.train(
            run, learner, training, validation, order, agreement=agreement, observe=observe, warmed_up=warmed_up
        )
        if is_finished:
            self.tell_end()
            return 0
        return self.stop.exit_code if self.stop.is_set else EXIT_LOST_PEER

    def tell_end(self) -> None:
        """Say what came of the run."""
        if result := run_identity.read_result(self.directory):
            print(f"run {self.run_id} is finished: {run_identity.summary(result)}")

    def order(self) -> Sampler:
        """Of the training examples."""
        num_examples = self.data.num_examples["train"]
        return Sampler(
            num_examples=num_examples, global_batch_size=self.config.global_batch_size, seed=self.config.seed,
            block_size=block_size(self.config.shuffle, num_examples=num_examples, image_size=self.data.image_size),
        )  # fmt: skip

    def load(self, split: str, observe: Observer) -> Examples:
        """The examples of a split; those of training cropped at random where the configuration says so.

        A stop request ends the process here and now: copying may take long, and there is nothing to save.
        """
        crop, block = False, 0
        if split == "train":
            crop, block = self.config.augment == "crop-and-flip", self.order().block_size
        with self.stop.at_once(lambda: self._leave_unsaved(observe)):
            return load_split(self.data, split, crop=crop, block_size=block)

    def _leave_unsaved(self, observe: Observer) -> NoReturn:
        observe("notice", message=f"{self.stop.signal_name}: stopped before the first step; there is nothing to save")
        observe("exit", code=self.stop.exit_code)
        sys.stdout.flush()
        # Not by an exception: threads that wait for a bucket would be waited for, and so would other workers.
        os._exit(self.stop.exit_code)

    def loop_run(self) -> loop.Run:
        """What stays fixed in the loop."""
        num_steps = self.config.epochs * self.order().steps_per_epoch
        return loop.Run(
            run_id=self.run_id, identity=self.identity, checkpoint_directory=self.directory,
            num_steps=min(num_steps, self.config.max_steps or num_steps), is_chief=self.cluster.is_chief,
            checkpoint_every_steps=self.options.checkpoint_every_steps,
            checkpoint_every_seconds=self.options.checkpoint_every_seconds,
            keep_checkpoints=self.options.keep_checkpoints,
        )  # fmt: skip

    def learner(self, distribution_strategy: tf.distribute.Strategy) -> Learner:
        """The model with its starting weights."""
        return Learner(self.config, distribution_strategy, **self.learner_fields())

    def learner_fields(self) -> dict[str, Any]:
        """What a learner is told besides the configuration."""
        return {
            "image_size": self.data.image_size,
            "num_classes": self.data.num_classes,
            "num_steps": self.loop_run().num_steps,
            "precision": precision.choose(self.options.precision, exact=self.options.exact),
        }

    def hear_notices(self) -> list[str]:
        """What the metadata server has said since it was asked last; each is a reason to save, and to go on."""
        return [
            f"the metadata server says {notice.kind} ({notice.text}): saving, and going on"
            for notice in self._watcher.pending()
        ]

    @functools.cached_property
    def _watcher(self) -> notices.Watcher:
        return notices.watch(os.environ)

    def tell_start(self, num_devices: int, observe: Observer) -> None:
        """Make the checkpoint directory and write the event that opens this process' part of the diary."""
        try:
            storage.make_directory(self.directory)
        except OSError as error:
            if storage.is_remote(self.directory):
                raise
            reason = error.strerror or error
            raise UserError(f"checkpoint directory {self.directory!r} cannot be made ({reason})") from error
        observe(
            "start", run_id=self.run_id, model=self.config.model, num_steps=self.loop_run().num_steps, pid=os.getpid(),
            steps_per_epoch=self.order().steps_per_epoch, global_batch_size=self.config.global_batch_size,
            exact=self.options.exact, num_devices=num_devices, num_workers=self.cluster.num_workers,
            task=f"{self.cluster.task_type} {self.cluster.task_index}",
            precision=precision.choose(self.options.precision, exact=self.options.exact),
        )  # fmt: skip

    def _observer(self, watchdog: Watchdog) -> Observer:
        log = events.EventLog(self.directory, events.replica_name(os.environ, self.cluster))
        # One curve a run: the workers compute the same.
        is_plotted = self.cluster.is_chief or self.cluster.is_evaluator
        board = observers.tensorboard(os.environ.get("AIP_TENSORBOARD_LOG_DIR", "") if is_plotted else "")
        observe = observers.all_of([log.write, board, observers.console(self.loop_run().num_steps)])
        watchdog.tell = lambda message: observe("notice", message=message)
        return observe

    def _leave(self, error: tf.errors.OpError, observe: Observer) -> NoReturn:
        reason = str(error).splitlines()[0][:300]
        observe("notice", message=f"another worker is gone ({reason}); leaving to be restarted")
        observe("exit", code=EXIT_LOST_PEER)
        # TensorFlow's own threads may abort any moment, so the diary comes first.
        for thread in threading.enumerate():
            # A checkpoint that is nearly there is worth a few of the seconds that the service gives.
            if thread.name == "checkpoint-writer":
                thread.join(5.0)
        sys.stdout.flush()
        abort()
