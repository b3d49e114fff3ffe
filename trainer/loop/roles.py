"""Runs this process in its role (chief or worker, parameter server, evaluator) and decides how it ends."""

import re

import tensorflow as tf

from exact_resume.checkpoints.lease import NotHolder
from exact_resume.errors import InputError
from exact_resume.workers.deadline import TimedOut
from exact_resume.workers.watchdog import leave, leave_displaced
from localvertex_base.userinput.errors import UserError
from trainer.data.stored.shards import damage_named
from trainer.learner import distribution
from trainer.loop import evaluator, parameter_servers, worker
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
    folder, exit_code = training.folder, 1
    # Until here nothing has been written.
    try:
        folder.watch()
        training.meet_workers()
    except TimedOut as gave_up:
        return gave_up.exit_code
    training.refuse_other_run()
    # From the start: building and tracing take longer than the 30 seconds that a notice may leave.
    training.open_folder()
    try:
        with damage_named():
            exit_code = _run_role(training)
    except (UserError, InputError):
        exit_code = 2
        raise
    except TimedOut as gave_up:
        exit_code = gave_up.exit_code
    except NotHolder as error:
        leave_displaced(error)
    except Exception as error:
        if training.cluster.num_workers > 1 and isinstance(error, tf.errors.OpError):
            if isinstance(error, _LOST_PEER) or _MENTIONS_PEERS.search(str(error.message)):
                leave(str(error).splitlines()[0][:300], folder.log_event)
        if not folder.stopped_by(error):
            raise
        exit_code = training.stop.exit_code
    finally:
        folder.log_exit(exit_code)
        folder.close()
    return exit_code


def _run_role(training: Training) -> int:
    if training.cluster.is_evaluator:
        return evaluator.evaluate(training)
    if not training.cluster.has_parameter_servers:
        return worker.train(training)
    if training.cluster.task_type == "chief":
        return parameter_servers.lead(training)
    return parameter_servers.serve(training)
