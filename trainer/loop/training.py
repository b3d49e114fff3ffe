"""The parts of a training run, assembled from flags, data and cluster."""

import argparse
import contextlib
import dataclasses
import functools
import os
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

import keras
import tensorflow as tf

from exact_resume.checkpoints import result_file
from exact_resume.checkpoints.early_stopping import EarlyStopping
from exact_resume.events import log as event_log
from exact_resume.events.observers import Observer
from exact_resume.files import storage
from exact_resume.loop import Schedule
from exact_resume.run_folder import RunFolder
from exact_resume.workers import place as places
from exact_resume.workers.cluster import Cluster
from exact_resume.workers.deadline import Deadline
from exact_resume.workers.meeting import AtAddress, refuse_difference
from exact_resume.workers.peers import Peer, wait_for
from exact_resume.workers.signals import StopRequest, end_at_once
from exact_resume.workers.team import OneWorker, SeveralWorkers, Team
from exact_resume.workers.watchdog import leave
from trainer.checkpoints import exactness, identity, seen
from trainer.checkpoints.exactness import Devices
from trainer.config import TrainConfig
from trainer.data.dataset import Dataset
from trainer.data.examples import Examples, load_split
from trainer.data.sampler import Sampler, block_size
from trainer.learner import distribution, precision
from trainer.learner.learner import Learner
from trainer.loop import loop, warm_start
from trainer.loop.board import EVALUATOR, VALIDATION, Board, run_name
from trainer.loop.console import PlainLines
from trainer.loop.warm_start import WarmStart
from trainer.models import recipes

_CONNECT_SECONDS = 120
"""Time in which TensorFlow has to connect the machines, which have just met."""

_EQUAL_OPTIONS = ("exact", "allow_other_devices", "xla", "checkpoint_every_steps")
"""Flags outside of the identity that decide together with it what the workers do in each call."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Training:
    """One process of a run: what its role needs."""

    options: argparse.Namespace
    """Parsed by `trainer.task`."""
    config: TrainConfig
    data: Dataset
    identity: dict[str, Any]
    directory: str
    """Checkpoint folder."""
    cluster: Cluster
    stop: StopRequest

    def patience(self) -> Deadline:
        """Return how long to wait for other machines, from now on."""
        seconds, option = self.options.peer_timeout_seconds, "--peer-timeout-seconds"
        return Deadline(self.stop, seconds, _print, option=option)

    def meet_workers(self) -> Team:
        """Wait for the other workers, compare with them all that must be equal, and return them.

        Raises:
            InputError: A field differs.
            TimedOut: Not all have come, or a stop was requested.
        """
        if self.cluster.is_evaluator:
            # It only reads checkpoints, perhaps on a machine of another kind, and may start last.
            return OneWorker()
        if self.cluster.has_parameter_servers:
            # The others only run what the chief sends them.
            if self.cluster.is_chief:
                wait_for(self.peers("worker", "ps"), self.patience())
        elif self.cluster.num_workers > 1:
            fields = {
                **self.identity,
                **{name: getattr(self.options, name) for name in _EQUAL_OPTIONS},
                "precision": self.dtype(),
                "kind of devices": self._kind_of_devices(),
                "number of devices": distribution.num_devices(self.options.logical_cpu_devices),
                "TF_CONFIG cluster": self.cluster.addresses,
                "TensorFlow": tf.__version__,
                "Keras": keras.__version__,
            }
            place, tasks = places.of_cluster(self.cluster), self.cluster.tasks("chief", "worker")
            # TensorFlow takes the address over, but not the connections.
            team = SeveralWorkers(
                place,
                AtAddress(place, tasks),
                timeout_seconds=self.options.peer_timeout_seconds,
                deadline=self.patience(),
                leave=lambda reason: leave(reason, self.folder.log_event),
            )
            try:
                team.exchange(fields, lambda shown: refuse_difference(shown, names=[*tasks]))
            except BaseException:
                team.close()
                raise
            return team
        return OneWorker()

    @functools.cached_property
    def folder(self) -> RunFolder:
        """The checkpoint folder, in which only the chief writes checkpoints."""
        return RunFolder(
            self.directory,
            self.identity,
            is_chief=self.cluster.is_chief,
            stop=self.stop,
            report=_print,
            observer=PlainLines(),
            defaults=identity.DEFAULTS,
            way_on=identity.WAY_ON,
        )

    def open_folder(self) -> None:
        """Open the event log and the TensorBoard logs, and listen for notices."""
        replica = event_log.replica_name(os.environ, self.cluster)
        self.folder.open(replica, watchdog_seconds=self.options.watchdog_seconds, observers=[self._board()])

    def peers(self, *kinds: str) -> list[Peer]:
        """Return all machines of some kinds (chief, worker, ps)."""
        return [Peer(task, address) for task, address in self.cluster.tasks(*kinds).items()]

    def refuse_other_run(self) -> None:
        """Refuse a folder with another run before anything is written there, the event log included.

        Raises:
            InputError: The folder contains another run, or an exact run that was trained on other devices.
        """
        self.folder.refuse_other_run()
        here = self.exact_devices()
        if here and not self.cluster.is_evaluator and not self.options.allow_other_devices:
            exactness.refuse_other_devices(self.directory, here)

    @contextlib.contextmanager
    def connecting(self) -> Iterator[None]:
        """Limit the time in which TensorFlow connects the machines."""
        with contextlib.ExitStack() as limit:
            if self.cluster.addresses:
                # The call reports nothing while it waits.
                _print(f"connecting to the other machines, for at most {_CONNECT_SECONDS} s")
                limit.enter_context(end_at_once(_CONNECT_SECONDS))
            yield
        # Also because TensorFlow replaces the SIGTERM handler.
        self.stop.install()

    def exact_devices(self) -> Devices | None:
        """Return the devices of all machines, and how they compute, if the run is exact: its weights depend on both."""
        if not self.options.exact:
            return None
        kind = self._kind_of_devices()
        kind += f", {self.dtype()}" if self.dtype() != "float32" else ""
        kind += ", XLA" if self.options.xla == "on" else ""
        num_machines = self.cluster.num_workers
        num_devices = num_machines * distribution.num_devices(self.options.logical_cpu_devices)
        return {"kind": kind, "num_devices": num_devices, "num_machines": num_machines}

    def _kind_of_devices(self) -> str:
        if self.options.exact:
            return distribution.kind_of_devices()
        return "GPU" if distribution.has_gpu() else "CPU"

    def learner_arguments(self) -> dict[str, Any]:
        """Return the arguments of a learner besides configuration and distribution strategy."""
        return {
            "image_size": self.data.image_size,
            "num_classes": self.data.num_classes,
            "num_steps": self.num_steps,
            "dtype": self.dtype(),
            "class_weights": recipes.parse(self.config.recipe).weights_of(
                self.data.counts("train"), self.data.class_names
            ),
        }

    def dtype(self) -> str:
        """Return the dtype in which the devices compute."""
        return precision.choose(self.options.precision, exact=self.options.exact)

    def learner(self, distribution_strategy: tf.distribute.Strategy) -> Learner:
        """Make the model with its starting weights."""
        return Learner(self.config, distribution_strategy, **self.learner_arguments())

    def sampler(self) -> Sampler:
        """Return the order of the training examples."""
        num_examples = self.data.num_examples["train"]
        # Balanced sampling reads examples from anywhere.
        shuffle = "whole" if recipes.parse(self.config.recipe).sampling else self.config.shuffle
        return Sampler(
            num_examples=num_examples,
            global_batch_size=self.config.global_batch_size,
            seed=self.config.seed,
            block_size=block_size(shuffle, num_examples=num_examples, image_size=self.data.image_size),
        )

    @property
    def num_steps(self) -> int:
        """Planned length of the whole run."""
        return self.config.num_steps(self.data.num_examples["train"])

    def loop_run(self, fine_tuning_step: int) -> loop.Run:
        """Return what stays fixed in the loop."""
        return loop.Run(
            folder=self.folder,
            schedule=Schedule(
                num_steps=self.num_steps,
                save_every_steps=self.options.checkpoint_every_steps,
                save_every_seconds=self.options.checkpoint_every_seconds,
                keep_checkpoints=self.options.keep_checkpoints,
                validate_every_steps=self.sampler().steps_per_epoch,
                early_stopping=EarlyStopping(
                    patience=self.config.patience,
                    minimum_gain=self.config.minimum_accuracy_gain,
                    first_step=fine_tuning_step,
                ),
            ),
            devices=self.exact_devices(),
            warm_start=WarmStart(
                class_names=self.data.class_names,
                image_size=self.data.image_size,
                folder=self.options.starting_weights,
            ),
            rank=0 if self.cluster.has_parameter_servers else places.of_cluster(self.cluster).rank,
            num_workers=1 if self.cluster.has_parameter_servers else self.cluster.num_workers,
        )

    def load(self, split: str) -> Examples:
        """Load the examples of a split; training examples are cropped at random if configured.

        A stop request ends the process immediately: copying may take long, and there is nothing to save.
        """
        crop, block = False, 0
        if split == "train":
            crop, block = self.config.augment == "crop-and-flip", self.sampler().block_size
        with self.stop.immediate(self._leave_unsaved):
            return load_split(self.data, split, crop=crop, block_size=block)

    def _leave_unsaved(self) -> NoReturn:
        self.folder.notice(f"{self.stop.signal_name}: stopped before the first step; there is nothing to save")
        self.folder.log_exit(self.stop.exit_code)
        self.folder.close()
        sys.stdout.flush()
        # Not by an exception, which would wait for threads that read from a bucket and for other workers.
        os._exit(self.stop.exit_code)

    def train(
        self, learner: Learner, examples: Examples, validation: Examples, sampler: Sampler, team: Team | None = None
    ) -> None:
        """Train to the end with the other workers, and print the result; raise the errors of `loop.train`."""
        run = self.loop_run(learner.fine_tuning_step)
        loop.train(run, learner, examples, validation, sampler, team=team or OneWorker(), stop=self.stop)
        if result := result_file.read_result(self.directory):
            summary = identity.summary(result, self.data.constant_answer("validation"))
            print(f"run {self.folder.run_id} is finished: {summary}")

    def _board(self) -> Observer:
        """Return the TensorBoard logs. One process writes the curves of a run, because all workers compute the same."""
        if not (self.cluster.is_chief or self.cluster.is_evaluator):
            return lambda event, **fields: None
        directory = self.options.tensorboard_directory
        if directory:
            storage.make_directory(directory)
        # Vertex AI has set it: if it cannot be used, the logs are missing, but the run continues.
        directory = directory or os.environ.get("AIP_TENSORBOARD_LOG_DIR", "")
        name = run_name(self.options.run_label, self.config.model)
        folder = storage.join(directory or storage.join(self.directory, "tensorboard"), name)
        return Board(folder, evaluations=EVALUATOR if self.cluster.is_evaluator else VALIDATION)

    def log_start(self, num_devices: int) -> None:
        """Take the checkpoint folder, and log the event that opens this process's part of the event log."""
        # Only now that TensorFlow has connected the machines, because that call would have stopped the heartbeat.
        self.folder.take()
        self.folder.log_start(
            model=self.config.model,
            num_steps=self.num_steps,
            steps_per_epoch=self.sampler().steps_per_epoch,
            global_batch_size=self.config.global_batch_size,
            exact=self.options.exact,
            num_devices=num_devices,
            num_workers=self.cluster.num_workers,
            task=self.cluster.task,
            precision=self.dtype(),
        )
        if self.cluster.is_chief:
            sources = warm_start.records_of_seen_images(self.config.weights, self.options.starting_weights)
            if reason := seen.record(self.directory, self.data, sources):
                self.folder.notice(f"no record of the images that this model sees: {reason}")


def _print(message: str) -> None:
    print(message, flush=True)
