"""Names what is wrong with a training, from how its runs differ; several names where the runs cannot decide."""

import re
from enum import StrEnum

from localvertex.commands.prove.comparison import Comparison, Verdict, counts, distance, is_of_training, keyed, label
from localvertex.commands.prove.faults import Kind
from localvertex.commands.prove.outputs import Observation
from localvertex.commands.prove.trial import Trial


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


_SAVED = {
    Cause.RANDOM_STATE: re.compile(r"rng|random|generator|bit_?gen|pcg|mt19937|\bkey", re.I),
    Cause.DATA_ORDER: re.compile(r"order|perm|sampler|cursor|position|offset|loader|shuffle|ind(ex|ices)|seen", re.I),
}
"""Names in a checkpoint of a state that it has."""


def causes(
    kind: Kind, verdict: Verdict, trial: Trial, comparison: Comparison, reference: Observation, found: Observation
) -> list[Cause]:
    """Return the causes of a run that did not finish or that ended differently; empty if none is known."""
    if kind is Kind.BIT_FLIPPED:
        return [Cause.UNCHECKED]
    has_restarted = len(trial.exit_codes) > 1
    if trial.disturbance.is_in_place and (trial.disturbance.damaged or (has_restarted and trial.is_refused)):
        return [Cause.IN_PLACE]
    if verdict is Verdict.DID_NOT_FINISH:
        cause = Cause.UNCHECKED if has_restarted else Cause.EXIT_CODE
        return [cause] if trial.is_refused or trial.has_finished else []
    if comparison.learning_rate:
        return [Cause.SCHEDULE]
    if comparison.examples:
        return [Cause.DATA_ORDER]
    if comparison.steps_missing or any(each.name.endswith("(last)") for each in comparison.differences):
        return [Cause.STEPS]
    return _of_curve(comparison, reference, found)


def _of_curve(comparison: Comparison, reference: Observation, found: Observation) -> list[Cause]:
    """Look at the first losses after the restart: an optimizer's state shows a step later than all else."""
    names = [
        each.name for each in comparison.differences if len(reference[each.name]) > 3 and is_of_training(each.name)
    ]
    if not names:
        return []
    name = max(names, key=lambda each: ("loss" in label(each).lower(), len(reference[each])))
    points, has_counters = reference[name], counts(reference[name])
    expected = {key: each.value for key, each in keyed(points, has_counters, len(points))}
    after = [(key, each.value) for key, each in keyed(found[name], has_counters, len(points)) if each.process]
    after = [(key, value) for key, value in after if key in expected]
    if not after:
        return []
    (key, value), first = after[0], next(iter(expected))
    if not distance(value, expected[key]):
        return [Cause.OPTIMIZER]
    if key != first and 3 * distance(value, expected[first]) < distance(value, expected[key]):
        return [Cause.WEIGHTS]
    saved = {cause for cause, pattern in _SAVED.items() if any(pattern.search(label(each)) for each in found)}
    # What the checkpoint has no state of; without any hint it is the data or the random numbers.
    return [each for each in _SAVED if each not in saved] or [Cause.OPTIMIZER]
