"""Names what is wrong with a training, from how its runs differ; several names where the runs cannot decide."""

import re
from enum import StrEnum

from localvertex.commands.prove.comparison import EXAMPLES, Comparison, Judgement, distance
from localvertex.commands.prove.faults import FaultKind
from localvertex.commands.prove.trial import ProofRun


class Cause(StrEnum):
    """A defect of a training."""

    DATA_ORDER = "data order"
    OPTIMIZER = "optimizer not restored"
    SCHEDULE = "learning-rate schedule not restored"
    RANDOM_STATE = "random state"
    WEIGHTS = "weights not restored"
    STEPS = "steps repeated or left out"
    IN_PLACE = "checkpoint written in place"
    UNCHECKED = "damaged checkpoint loaded without a check"
    EXIT_CODE = "exit code"


_LEARNING_RATE = re.compile(r"(^|[^a-z])(lr|learning[ _-]?rate)([^a-z]|$)", re.I)
_SAVED = {
    Cause.RANDOM_STATE: re.compile(r"rng|random|generator|bit_?gen|pcg|mt19937|\bkey", re.I),
    Cause.DATA_ORDER: re.compile(r"order|perm|sampler|cursor|position|offset|loader|shuffle|ind(ex|ices)|seen", re.I),
}
"""Names in a checkpoint of a state that it has."""


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
    different = comparison.differences
    if any(_LEARNING_RATE.search(each.curve.title) for each in different):
        return [Cause.SCHEDULE]
    # A list of examples, or a digest of one.
    if any(EXAMPLES.search(each.curve.own_name) and each.found.startswith(("[", "'")) for each in different):
        return [Cause.DATA_ORDER]
    if comparison.steps_missing or any(each.is_of_end for each in different):
        return [Cause.STEPS]
    return _of_curve(comparison)


def _of_curve(comparison: Comparison) -> list[Cause]:
    """Look at the first losses after the restart: an optimizer's state shows a step later than all else."""
    curves = [each.curve for each in comparison.differences]
    curves = [each for each in curves if len(each.expected) > 3 and each.is_of_training]
    if not curves:
        return []
    curve = max(curves, key=lambda each: ("loss" in each.title.lower(), len(each.expected)))
    after = [(key, each.value) for key, each in curve.found if each.process and key in curve.expected]
    if not after:
        return []
    key, value = after[0]
    away = distance(value, curve.expected[key][0])
    if not away:
        return [Cause.OPTIMIZER]
    if key != next(iter(curve.expected)) and 3 * distance(value, curve.first) < away:
        return [Cause.WEIGHTS]
    # What the checkpoint has no state of; without any hint it is the data or the random numbers.
    saved = {cause for cause, pattern in _SAVED.items() if any(pattern.search(x.title) for x in comparison.curves)}
    return [each for each in _SAVED if each not in saved] or [Cause.OPTIMIZER]
