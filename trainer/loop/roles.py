"""Runs this process in its role (chief or worker, parameter server, evaluator) and decides how it ends."""

import contextlib
import dataclasses
import re
from collections.abc import Iterator

import tensorflow as tf

from exact_resume.checkpoints.lease import NotHolder
from exact_resume.errors import InputError
from exact_resume.loop import Stopped
from exact_resume.workers.deadline import TimedOut
from exact_resume.workers.team import Team
from exact_resume.workers.watchdog import leave, leave_displaced
from localvertex._base.userinput.errors import UserError
from trainer.data.stored.shards import damage_named
from trainer.learner import distribution, random_numbers
from trainer.loop import asynchronous
from trainer.loop.training import Training
from trainer.models import recipes

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
        team = training.meet_workers()
    except TimedOut as gave_up:
        return gave_up.exit_code
    with contextlib.closing(team):
        # All refuse together: one that is slower would count the others as lost.
        team.exchange(None, lambda _: training.refuse_other_run())
        # From the start: building and tracing take longer than the 30 seconds that a notice may leave.
        training.open_folder()
        try:
            with damage_named(), _telling(team):
                exit_code = _run_role(training, team)
        except (UserError, InputError):
            exit_code = 2
            raise
        except (TimedOut, Stopped) as ended:
            exit_code = training.stop.exit_code if isinstance(ended, Stopped) else ended.exit_code
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


@contextlib.contextmanager
def _telling(team: Team) -> Iterator[None]:
    """Let the other workers know of an error, which perhaps all of them have."""
    try:
        yield
    except BaseException:
        team.fail()
        raise


def _run_role(training: Training, team: Team) -> int:
    if training.cluster.is_evaluator:
        return asynchronous.evaluate(training)
    if not training.cluster.has_parameter_servers:
        return _train(training, team)
    if training.cluster.task_type == "chief":
        return asynchronous.lead(training)
    return asynchronous.serve(training)


def _train(training: Training, team: Team) -> int:
    """Train as chief, worker or single machine; return the exit code."""
    with training.connecting():
        strategy = distribution.make(training.cluster)
    learner = training.learner(strategy)
    if training.config.global_batch_size < learner.num_replicas:
        raise UserError(
            f"global_batch_size={training.config.global_batch_size} is less than the {learner.num_replicas} devices;"
            f" give at least {learner.num_replicas}, or fewer devices"
        )
    if training.options.xla == "on":
        learner.use_xla(True)
    remarks = random_numbers.check(learner.model, strategy, training.config.model, exact=training.options.exact)
    training.log_start(learner.num_replicas)
    for remark in remarks:
        training.folder.notice(remark)
    examples, validation, sampler = training.load("train"), training.load("validation"), training.sampler()
    if recipes.parse(training.config.recipe).sampling:
        sampler = dataclasses.replace(sampler, labels=examples.labels)
    training.train(learner, examples, validation, sampler, team)
    return 0
