"""Names the defect of a training, from how its runs differ; several names where the runs cannot decide.

The first loss after a restart depends on the restored weights, the examples and the random numbers; the optimizer, the
learning rate and the gradients so far show in the second one. Statistics and averages of weights show only where the
model is evaluated. No name is better than a wrong name: there is no name without steps in the log, for differences that
came later in the same epoch, and where the weights are equal or another replica differs.
"""

import re
from enum import StrEnum

import numpy as np

from localvertex.prove.comparison import OF_OTHERS, ComparedCurve, Comparison, Judgement, other_end
from localvertex.prove.faults import FaultKind
from localvertex.prove.trial import ProofRun


class Cause(StrEnum):
    """A defect of a training."""

    DATA_ORDER = "data order"
    OPTIMIZER = "optimizer not restored"
    GRADIENTS = "accumulated gradients not restored"
    SCHEDULE = "learning-rate schedule not restored"
    RANDOM_STATE = "random state"
    WEIGHTS = "weights or statistics not restored"
    STEPS = "steps repeated or left out"
    STOPPING = "stopping condition not restored"
    IN_PLACE = "checkpoint written in place"
    UNCHECKED = "damaged checkpoint loaded without a check"
    EXIT_CODE = "exit code"


_LEARNING_RATE = re.compile(r"(^|[^a-z])(lr|learning[ _-]?rate)([^a-z]|$)", re.I)
_EVALUATION = re.compile(r"(^|[^a-z])(val|valid|validation|test|eval|evaluate|evaluation|dev)([^a-z]|$)", re.I)
_STEP = re.compile(r"step|iter|batch|update", re.I)


def causes(kind: FaultKind, verdict: Judgement, trial: ProofRun, comparison: Comparison) -> list[Cause]:
    """Return the causes of a run that did not finish or that ended differently; empty if none is known."""
    if kind is FaultKind.BIT_FLIPPED:
        return [Cause.UNCHECKED]
    has_restarted = len(trial.exit_codes) > 1
    if trial.disturbance.is_in_place and (trial.disturbance.damaged or (has_restarted and trial.is_refused)):
        return [Cause.IN_PLACE]
    if verdict is Judgement.DID_NOT_FINISH:
        cause = Cause.UNCHECKED if has_restarted else Cause.EXIT_CODE
        return [cause] if trial.is_refused or trial.has_finished else []
    differences = [each for each in comparison.differences if not each.is_of_end]
    names = {each.curve.name for each in differences}
    weights = {each.name for each in comparison.curves if each.is_of_model and np.size(each.first) > 1}
    logged = [each for each in comparison.curves if each.has_steps and each.is_of_training and each.is_number]
    is_of_others = any(map(OF_OTHERS.match, names))
    if verdict is not Judgement.DIFFERENT or is_of_others or (weights and not weights & names) or not logged:
        return []
    if any(each.curve.has_examples for each in differences):
        return [Cause.STEPS, Cause.DATA_ORDER] if any(map(other_end, logged)) else [Cause.DATA_ORDER]
    return [Cause.STEPS] if comparison.steps_missing else _of_curves(comparison, logged)


def _of_curves(comparison: Comparison, logged: list[ComparedCurve]) -> list[Cause]:
    first_different = {each.curve.name: each.key for each in comparison.differences if not each.is_of_end}
    rates = [each for each in logged if _LEARNING_RATE.search(each.own_name)]
    losses = [each for each in logged if each not in rates and not _is_of_evaluation(each)]
    curve = max(losses, key=lambda each: ("loss" in each.title.lower(), len(each.expected)), default=None)
    after = [key for key in curve.resumed_at if key in curve.expected] if curve else []
    if curve is None or not after:
        return []
    start, at = after[0], first_different.get(curve.name, ())
    rate_at = min((first_different[each.name] for each in rates if each.name in first_different), default=())
    if rate_at and (rate_at == start or not at or rate_at < at):
        return [Cause.SCHEDULE]
    if at not in after:
        if any(each.is_of_end and each.curve.found for each in comparison.differences):
            return [Cause.STOPPING]
        evaluated = {each.name for each in logged if _is_of_evaluation(each)}
        return [Cause.WEIGHTS] if evaluated & {*first_different} else []
    num_equal = after.index(at)
    if (
        curve.gap != 1
        or (num_equal and comparison.is_noisy)
        or not (_STEP.search(curve.name) or "epoch" not in curve.name)
    ):
        return []
    if num_equal == 1:
        return [Cause.OPTIMIZER, Cause.GRADIENTS, *([] if rates else [Cause.SCHEDULE])]
    if num_equal and at[:-1] == start[:-1]:
        return []
    by_chance = [Cause.RANDOM_STATE, Cause.DATA_ORDER]
    return by_chance if num_equal else [*by_chance, Cause.WEIGHTS, Cause.STEPS]


def _is_of_evaluation(curve: ComparedCurve) -> bool:
    return bool(_EVALUATION.search(curve.own_name) or (_EVALUATION.search(curve.name) and "train" not in curve.name))
