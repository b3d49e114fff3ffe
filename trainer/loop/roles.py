"""Runs this process in its role (chief or worker, parameter server, evaluator) and decides how it ends."""

import os
import re

import tensorflow as tf

from exact_resume.checkpoints.lease import NotHolder
from exact_resume.errors import InputError
from exact_resume.events import observers
from exact_resume.events.log import EventLog, replica_name
from exact_resume.events.observers import Observer
from exact_resume.workers.deadline import TimedOut
from exact_resume.workers.watchdog import Watchdog, leave, leave_displaced
from localvertex_base.userinput.errors import UserError
from trainer.data.stored.shards import damage_named
from trainer.learner import distribution
from trainer.loop import console, evaluator, parameter_servers, worker
from trainer.loop.training import Training

_LOST_PEER = (tf.errors.UnavailableError, tf.errors.DeadlineExceededError)
"""Errors of a collective operation when another worker is lost or frozen."""
_MENTIONS_PEERS = re.compile(r"collective|coordination|heartbeat|peer|connection|/job:|socket", re.IGNORECASE)
"""Other errors count as a lost worker if their message matches."""


def run(training: Training) -> int:
    """Do this process's part of the run; return its exit code."""
    distribution.split_cpu(training.options.logical_cpu_devices)
    if training.options.exact:
        tf.config.experimental.enable_op_determinism()
    # Until here nothing has been written.
    try:
        training.watch_lease()
        training.meet_workers()
    except TimedOut as gave_up:
        return gave_up.exit_code
    training.refuse_other_run()
    watchdog = Watchdog(training.options.watchdog_seconds)
    # Listen from the start: building and tracing take longer than the 30 seconds that a notice may leave.
    log_event, exit_code, watcher = _observer(training, watchdog), 1, training.watcher
    logged: set[str] = set()
    log_event = observers.all_of([log_event, lambda event, **fields: logged.add(event)])
    try:
        with damage_named():
            exit_code = _run_role(training, log_event, watchdog)
    except (UserError, InputError):
        exit_code = 2
        raise
    except tf.errors.OpError as error:
        is_lost = isinstance(error, _LOST_PEER) or _MENTIONS_PEERS.search(str(error.message))
        if training.cluster.num_workers == 1 or not is_lost:
            raise
        leave(str(error).splitlines()[0][:300], log_event)
    except TimedOut as gave_up:
        exit_code = gave_up.exit_code
    except NotHolder as error:
        leave_displaced(error)
    finally:
        watchdog.close()
        watcher.close()
        # A mistake that was found before the start leaves nothing behind.
        if "start" in logged:
            log_event("exit", code=exit_code)
        training.release_lease()
    return exit_code


def _run_role(training: Training, log_event: Observer, watchdog: Watchdog) -> int:
    if training.cluster.is_evaluator:
        return evaluator.evaluate(training, log_event, watchdog)
    if training.cluster.strategy != "parameter-server":
        return worker.train(training, log_event, watchdog)
    if training.cluster.task_type == "chief":
        return parameter_servers.lead(training, log_event, watchdog)
    return parameter_servers.serve(training, log_event, watchdog)


def _observer(training: Training, watchdog: Watchdog) -> Observer:
    log = EventLog(training.directory, replica_name(os.environ, training.cluster), may_write=training.may_write)
    log_event = observers.all_of([log.write, training.board, console.PlainLines()])
    watchdog.report = lambda message: log_event("notice", message=message)
    return log_event
