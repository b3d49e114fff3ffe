"""The training role: a chief, a worker or a single machine."""

import contextlib
import dataclasses

import tensorflow as tf

from exact_resume.events.observers import Observer
from exact_resume.workers.meeting import meet
from exact_resume.workers.signals import end_at_once
from exact_resume.workers.watchdog import EXIT_LOST_PEER, Watchdog
from localvertex_base.userinput.errors import UserError
from trainer.learner import distribution, random_numbers
from trainer.learner.learner import Learner
from trainer.loop import loop, speed
from trainer.loop.training import CONNECT_SECONDS, Training
from trainer.loop.xla import timing, trial as xla_trial
from trainer.loop.xla.trial import Outcome


def train(training: Training, log_event: Observer, watchdog: Watchdog) -> int:
    """Train as chief, worker or single machine; return the exit code."""
    outcome = _trial_on_gpus(training)
    strategy = _connect(training)
    learner = training.learner(strategy)
    _refuse_small_batch(training, learner)
    if training.options.xla == "on":
        learner.use_xla(True)
    remarks = random_numbers.check(learner.model, strategy, training.config.model, exact=training.options.exact)
    training.log_start(learner.num_replicas, log_event)
    for remark in remarks:
        log_event("notice", message=remark)
    if _train(training, learner, outcome, log_event, watchdog):
        training.print_result()
        return 0
    return training.stop.exit_code if training.stop.is_set else EXIT_LOST_PEER


def _train(
    training: Training, learner: Learner, outcome: Outcome | None, log_event: Observer, watchdog: Watchdog
) -> bool:
    """Train to the end; return whether the run is finished."""
    examples, validation = training.load("train", log_event), training.load("validation", log_event)
    sampler, run, logs = training.sampler(), training.loop_run(), training.logs()
    on_warm_up = speed.FirstSteps(
        learner,
        examples,
        sampler,
        num_steps=run.num_steps,
        log_event=log_event,
        trial=(lambda: outcome or timing.time_xla(learner, examples, sampler)) if _tries_xla(training) else None,
    )
    logs.show_start(examples, sampler)
    with contextlib.closing(logs.profiler(log_event)) as profiler:
        return loop.train(
            run,
            learner,
            examples,
            validation,
            sampler,
            sync=training.sync(learner, watchdog, log_event),
            log_event=log_event,
            on_warm_up=on_warm_up,
            profiler=profiler,
            on_finish=lambda: logs.show_end(learner, validation),
        )


def _connect(training: Training) -> tf.distribute.Strategy:
    """Connect to the other workers, and take the devices."""
    is_alone = training.cluster.num_workers == 1
    if not is_alone:
        # The call reports nothing while it waits.
        print(f"connecting to the other workers, for at most {CONNECT_SECONDS} s", flush=True)
    with contextlib.nullcontext() if is_alone else end_at_once(CONNECT_SECONDS):
        strategy = distribution.make(training.cluster)
    # Also because TensorFlow replaces the SIGTERM handler.
    training.stop.install()
    return strategy


def _refuse_small_batch(training: Training, learner: Learner) -> None:
    if training.config.global_batch_size < learner.num_replicas:
        raise UserError(
            f"global_batch_size={training.config.global_batch_size} is less than the {learner.num_replicas} devices;"
            f" give at least {learner.num_replicas}, or fewer devices"
        )


def _tries_xla(training: Training) -> bool:
    """Return whether a trial decides about XLA."""
    return training.options.xla == "auto" and not training.options.exact


def _trial_on_gpus(training: Training) -> Outcome | None:
    """Try XLA before this process initialises its GPUs; None on a CPU, where the first steps are early enough.

    Raises:
        TimedOut: A stop was requested, or another worker has not come back from its trial.
    """
    if not _tries_xla(training) or not distribution.has_gpu():
        return None
    cluster = training.cluster
    num_replicas = cluster.num_workers * distribution.num_devices(cluster, training.options.logical_cpu_devices)
    outcome = xla_trial.on_gpus(
        {
            **training.learner_arguments(),
            "config": dataclasses.asdict(training.config),
            "batch_size": max(1, training.config.global_batch_size // num_replicas),
            "min_seconds": speed.MIN_REMAINING_SECONDS,
        },
        stop=training.stop,
    )
    if cluster.num_workers > 1:
        # A trial may take longer than TensorFlow is given to connect the machines.
        meet(cluster, {}, training.patience())
    return outcome
