"""The training role: a chief, a worker or a single machine."""

import dataclasses

from exact_resume.workers.watchdog import EXIT_LOST_PEER
from localvertex_base.userinput.errors import UserError
from trainer.learner import distribution, random_numbers
from trainer.loop import loop
from trainer.loop.training import Training
from trainer.models import recipes


def train(training: Training) -> int:
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
    if loop.train(training.loop_run(), learner, examples, validation, sampler, sync=training.sync(learner)):
        training.print_result()
        return 0
    return training.stop.exit_code if training.stop.is_set else EXIT_LOST_PEER
