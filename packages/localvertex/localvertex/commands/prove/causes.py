"""Names what is wrong with a training, from how its runs differ; several names where the runs cannot decide.

The first loss after a restart depends on the restored weights, the examples and the random numbers; the optimizer, the
learning rate and the gradients so far show from the second one on. Statistics and averages of weights show only where
the model is evaluated. Other weights make all losses after it higher, or all lower; other examples make each another.
"""

import re
from enum import StrEnum
from typing import Any

import numpy as np

from localvertex.commands.prove.comparison import EXAMPLES, ComparedCurve, Comparison, Judgement
from localvertex.commands.prove.faults import FaultKind
from localvertex.commands.prove.numbers import Key
from localvertex.commands.prove.trial import ProofRun


class Cause(StrEnum):
    """A defect of a training."""

    DATA_ORDER = "data order"
    OPTIMIZER = "optimizer not restored"
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
_STATES = {
    Cause.RANDOM_STATE: re.compile(r"rng|random|generator|bit_?gen|pcg|mt19937|\bkey", re.I),
    Cause.DATA_ORDER: re.compile(r"order|perm|sampler|shuffle|ind(ex|ices)|seen", re.I),
}
"""Names of states and lists in logs and checkpoints."""
_NUM_AFTER = 16
"""Losses after a restart that are looked at."""
_SMOOTH, _BY_CHANCE = 0.8, 1.4
"""Roughness of deviations below which they show other weights, and above which other examples or random numbers."""


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
    # A list of examples, or a digest of one.
    if any(
        EXAMPLES.search(each.curve.own_name) and each.found.startswith(("[", "'")) for each in comparison.differences
    ):
        return [Cause.DATA_ORDER]
    return [Cause.STEPS] if comparison.steps_missing else _of_curves(comparison)


def _of_curves(comparison: Comparison) -> list[Cause]:
    first_different = {each.curve.name: each.key for each in comparison.differences if not each.is_of_end}
    logged = [each for each in comparison.curves if each.is_of_training and each.is_number and len(each.expected) > 3]
    rates = [each for each in logged if _LEARNING_RATE.search(each.own_name)]
    losses = [each for each in logged if each not in rates and not _is_of_evaluation(each)]
    curve = max(losses, key=lambda each: ("loss" in each.title.lower(), len(each.expected)), default=None)
    after = {key: each.value for key, each in curve.found if each.process and key in curve.expected} if curve else {}
    if curve is None or not after:
        return []
    start, at = next(iter(after)), first_different.get(curve.name, ())
    rate_at = min((first_different[each.name] for each in rates if each.name in first_different), default=())
    if rate_at and (rate_at == start or not at or rate_at < at):
        return [Cause.SCHEDULE]
    if at not in after:
        if any(each.is_of_end and each.curve.found for each in comparison.differences):
            return [Cause.STOPPING]
        others = [each.curve for each in comparison.differences]
        return [Cause.WEIGHTS] if any(_is_of_evaluation(each) or each.is_of_model for each in others) else []
    num_equal = [*after].index(at)
    is_of_steps = curve.gap == 1 and (_STEP.search(curve.name) or "epoch" not in curve.name)
    # What only shows much later is neither.
    if not is_of_steps or (num_equal and comparison.is_noisy) or (num_equal >= _NUM_AFTER and at[:-1] == start[:-1]):
        return []
    if num_equal and (num_equal == 1 or at[:-1] == start[:-1]):
        return [Cause.OPTIMIZER] if rates else [Cause.OPTIMIZER, Cause.SCHEDULE]
    roughness = _BY_CHANCE if num_equal else _roughness(curve, after)
    if roughness < _SMOOTH:
        return [Cause.WEIGHTS, Cause.STEPS]
    # What a log or a checkpoint shows to be right is no cause.
    lists = [each for each in comparison.curves if isinstance(each.first, str) or np.size(each.first) > 1]
    equal = [each.title for each in lists if each.name not in first_different]
    unknown = [cause for cause, pattern in _STATES.items() if not any(map(pattern.search, equal))] or [*_STATES]
    return [*unknown, Cause.WEIGHTS] if roughness < _BY_CHANCE else unknown


def _is_of_evaluation(curve: ComparedCurve) -> bool:
    return bool(_EVALUATION.search(curve.own_name) or (_EVALUATION.search(curve.name) and "train" not in curve.name))


def _roughness(curve: ComparedCurve, after: dict[Key, Any]) -> float:
    """Return how much each relative deviation differs from the one before: 0 if all are alike, about 2 by chance."""
    pairs = np.array([(after[key], curve.expected[key][0]) for key in [*after][:_NUM_AFTER]], float).reshape(-1, 2)
    deviations = np.subtract(*np.log(np.abs(pairs) + 1e-30).T)
    return float(np.square(np.diff(deviations)).sum() / np.square(deviations).sum())
