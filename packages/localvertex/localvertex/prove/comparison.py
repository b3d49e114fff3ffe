"""Compares a disturbed run with undisturbed ones.

A disturbed run must have what all undisturbed runs have in common, to the last digit. Where they differ, five
of them show how much: a value that is further from all of them than three times their largest distance is different.
Names that no training gives its values measure something else if undisturbed runs differ in them. A resumed program may
print more or less than before: what both have is compared and counted.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import numpy as np

from localvertex.jobs.job import PRIMARY
from localvertex.prove.numbers import Key, Point
from localvertex.prove.outputs import UNREAD, Observation

_ROUNDING = 1e-6
"""Relative difference that rounding explains."""
_FACTOR = 3.0
"""Times the largest distance between undisturbed runs."""
_NEIGHBOURS = 10
"""Neighbouring keys on each side whose distances count: five runs show the noise of one step badly."""

_MIN_STEPS = 3
"""Steps that a curve needs to show where a training ends."""
_HALF = 0.5
"""Share of an array that has to be equal in undisturbed runs, so that differences are not noise."""
_NUM_EQUAL_AFTER = 2
"""Values after a single other one that show it as a mean since the last line, which a restart has shortened."""

_OF_TRAINING = re.compile(
    r"loss|acc|error|metric|auc|f1|lr|learn|grad|norm|mse|mae|ppl|perplex|score|reward|precision|recall|weight|val|train|"
    r"test|nll|cost|objective|entropy",
    re.I,
)
_OF_EVALUATION = re.compile(r"val|test|eval|best", re.I)
"""Lines whose values are not means over steps of training."""
_EXAMPLES = re.compile(r"example|sample|ids?$|idx|indices|index|rows?$|batch|order|shard", re.I)
"""Names of lists of examples."""
OF_OTHERS = re.compile(rf"workerpool(?!{PRIMARY.removeprefix('workerpool')}\|)")
"""Begins the names of what other replicas than the primary one have logged; the job ends without them."""


class Judgement(StrEnum):
    """How a disturbed run ended, compared with undisturbed ones."""

    EQUAL = "equal"
    WITHIN_NOISE = "equal within noise"
    CANNOT_BE_JUDGED = "cannot be judged"
    DIFFERENT = "different"
    PROGRESS_LOST = "progress lost"
    DID_NOT_FINISH = "did not finish"


BAD = (Judgement.DIFFERENT, Judgement.PROGRESS_LOST, Judgement.DID_NOT_FINISH)


@dataclass(frozen=True, kw_only=True)
class ComparedCurve:
    """A value in all runs: from step to step in a log; in a file, it has one key, which is empty."""

    name: str
    expected: dict[Key, list[Any]]
    """Values of each undisturbed run, at the keys that all runs have."""
    found: list[tuple[Key, Point]]
    """Points of the disturbed run, in the order in which they came."""

    @property
    def is_of_training(self) -> bool:
        """Whether it has a name that trainings use for losses, metrics and weights."""
        return bool(_OF_TRAINING.search(self.own_name))

    @property
    def is_of_file(self) -> bool:
        """Whether it is from an output file."""
        return "/" in self.name.partition("|")[0]

    @property
    def own_name(self) -> str:
        """Its name without its source."""
        return self.name.rpartition("|")[2]

    @property
    def title(self) -> str:
        """Its name for readers; the name of a value in a file has the file's path."""
        return f"{self.name.partition('|')[0] * self.is_of_file} {self.own_name}".strip()

    @property
    def is_whole(self) -> bool:
        """Whether all its steps are in all runs; the steps of an event depend on its time."""
        return not OF_OTHERS.match(self.name) and "|event " not in self.name

    @property
    def is_of_model(self) -> bool:
        """Whether it is from a file of the model."""
        return "/model/" in self.name

    @property
    def is_number(self) -> bool:
        """Whether it is one number, no list and no text."""
        return bool(self.first.size == 1 and self.first.dtype.kind != "U")

    @property
    def has_steps(self) -> bool:
        """Whether it is from a log whose lines have steps or epochs."""
        return not self.is_of_file and len(self.expected) >= _MIN_STEPS and any(each.key for _, each in self.found)

    @property
    def resumed_at(self) -> list[Key]:
        """Its keys after the first restart, in their order."""
        return [key for key, point in self.found if point.process]

    @property
    def has_examples(self) -> bool:
        """Whether it is a list of examples in such a log."""
        is_list = self.has_steps and self.first.size > 1 and self.first.dtype.kind == "i"
        return is_list and bool(_EXAMPLES.search(self.own_name))

    @property
    def shows_the_weights(self) -> bool:
        """Whether it is a loss of an evaluation whose last value is equal, bit for bit, after a restart.

        One that is the same as before, such as 0, says nothing.
        """
        if not (self.found and self.is_number and _OF_EVALUATION.search(self.name) and "loss" in self.own_name.lower()):
            return False
        (key, point), (*before, last) = self.found[-1], self.expected.values()
        is_last = (point.process > 0 or self.is_of_file) and key == max(self.expected)
        return is_last and all(point.value == each for each in last) and last[0] not in [each[0] for each in before]

    @property
    def gap(self) -> float:
        """Steps from one key to the next."""
        return float(max([1.0, *np.diff([key[-1] for key in self.expected if key])[-1:]]))

    @property
    def first(self) -> Any:
        """The first expected value."""
        return next(iter(self.expected.values()))[0]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The first value of a curve that is not as in undisturbed runs."""

    curve: ComparedCurve
    key: Key = ()
    expected: str
    found: str
    is_of_end: bool = False
    """Whether it is where the curve ends."""
    num_after: int = -1
    """Equal values after a single one that can be a mean; -1: it is not such a value."""

    def __str__(self) -> str:
        """Format it as a sentence."""
        at = " (last)" if self.is_of_end else f" at {shown_key(self.key)}" * bool(self.key)
        return f"{self.curve.title}{at}: {self.found} instead of {self.expected}"


@dataclass(kw_only=True)
class Comparison:
    """The compared values, and the differences."""

    curves: list[ComparedCurve] = field(default_factory=list)
    """All values that undisturbed runs have in common."""
    differences: list[Difference] = field(default_factory=list)
    num_compared: int = 0
    """Number of values after the first restart, in files, and in curves that end without a restart."""
    is_exact: bool = True
    """Whether nothing needed the noise or rounding to be equal."""
    is_noisy: bool = False
    """Whether undisturbed runs differ."""
    steps_lost: int = 0
    """Logged by a second process again."""
    steps_missing: int = 0
    """Logged by no process, beyond a line for each restart."""
    examples_repeated: int | None = None
    """Examples seen more often than in an undisturbed run; None: no log has examples."""
    examples_never_seen: int | None = None
    not_compared: list[str] = field(default_factory=list)
    """Differences that prove nothing: files without a reader, means over a restart, whole numbers without a step."""
    is_model_unread: bool = False
    """Whether the bytes of a model differ that no reader reads."""

    def add(self, curve: ComparedCurve, rounding: float) -> None:
        """Compare a curve, unless it measures something else than the training."""
        self.curves.append(curve)
        own = [max(distance(each, values[0]) for each in values) for values in curve.expected.values()]
        if any(own) and curve.is_number and not curve.is_of_training:
            return
        # Texts, and whole numbers such as a random state that no seed decides, have no noise.
        self.is_noisy |= any(0 < each < math.inf for each in own)
        if curve.found:
            self._count(curve)
        different = self._first_difference(curve, own, rounding) if curve.found else None
        self.differences += filter(None, [different or other_end(curve)])

    def _count(self, curve: ComparedCurve) -> None:
        """Count the steps and the examples that are repeated or missing."""
        seen, last = dict(curve.found), max(key for key, _ in curve.found)
        num_again = len({(key, point.process) for key, point in curve.found}) - len(seen)
        self.steps_lost = max(self.steps_lost, round(num_again * curve.gap))
        # A program may log every tenth step from where it resumed, and a kill may take the last line.
        num_missing = sum(key not in seen and key < last for key in curve.expected) - 1
        is_regular = curve.has_steps and curve.is_whole and curve.is_of_training
        if is_regular and seen.keys() <= curve.expected.keys() and num_missing > curve.found[-1][1].process:
            self.steps_missing = max(self.steps_missing, num_missing + 1)
        if curve.has_examples:
            every = [values[0] for values in curve.expected.values()], [point.value for point in seen.values()]
            before, after = (Counter(np.concatenate([*map(np.ravel, each)]).tolist()) for each in every)
            self.examples_repeated, self.examples_never_seen = (after - before).total(), len(before.keys() - after)

    def _first_difference(self, curve: ComparedCurve, own: list[float], rounding: float) -> Difference | None:
        index, first = {key: at for at, key in enumerate(curve.expected)}, curve.first
        different, left_out, away, num_after = list[Difference](), list[Difference](), 0.0, 0
        processes = list[int]()
        is_array = curve.is_of_file and first.ndim > 0
        # One whole number without a step may count anything, such as the starts.
        is_other = curve.is_number and not curve.is_of_training and not is_array
        is_vague = is_other and [*index] == [()] and first.item() % 1 == 0
        has_ended = not curve.resumed_at and (len(own) >= _MIN_STEPS or max(index) in dict(curve.found))
        for key, point in curve.found:
            if key not in index:
                continue
            values, at, value = curve.expected[key], index[key], point.value
            noise = max(own[max(0, at - _NEIGHBOURS) : at + _NEIGHBOURS + 1])
            nearest = min(distance(each, value) for each in values)
            is_unread = str(value).startswith(UNREAD)
            difference = Difference(curve=curve, key=point.key, expected=_shown(values[0]), found=_shown(value))
            # A list in a log may be cut; an array in a file is whole, or a history since the restart.
            is_history = value.size > 0 and not distance(np.ravel(values[0])[-value.size :], value)
            is_cut = value.shape != values[0].shape and (is_history or not curve.is_of_file)
            is_away = nearest > rounding * _size(values[0]) + _FACTOR * noise
            # A column of an array may be of the clock.
            is_mixed = is_array and is_away and noise and np.mean(values[0] == values[-1]) >= _HALF
            if nearest and (is_cut or is_unread or is_vague or is_mixed or noise == math.inf):
                self.is_model_unread |= is_unread and not noise and curve.is_of_model
                left_out.append(difference)
                continue
            self.num_compared += (point.process > 0 or has_ended) and not is_vague
            self.is_exact &= not nearest or is_away
            different += [difference] * is_away
            processes += [point.process] * is_away
            away, num_after = (max(away, nearest), 0) if is_away else (away, num_after + 1)
        self.not_compared += map(str, left_out[:1])
        # A mean of the training since the last line is one of a curve, or of all steps.
        is_curve = len(index) >= _MIN_STEPS and not _OF_EVALUATION.search(curve.name)
        # Each restart shortens one.
        is_single = len({*processes}) == len(processes) and away < math.inf
        is_mean = curve.is_number and (is_curve or "train" in curve.name) and is_single
        return replace(different[0], num_after=num_after if is_mean else -1) if different else None

    def leave_out_means(self) -> None:
        """Leave out single means of the training that a restart has shortened: what comes after them is equal."""
        # Those of a checkpoint may be from before the restart.
        has_state = any(
            (each.is_of_model and each.first.size > 1 and each.found) or each.shows_the_weights for each in self.curves
        )
        num_needed = 0 if has_state and all(each.num_after >= 0 for each in self.differences) else _NUM_EQUAL_AFTER
        means = [each for each in self.differences if each.num_after >= num_needed]
        self.not_compared += [f"{each}, a mean over the restart" for each in means]
        self.differences = [each for each in self.differences if each not in means]

    @property
    def verdict(self) -> Judgement:
        """Judge a run that has finished."""
        if self.differences:
            return Judgement.DIFFERENT
        if not self.num_compared or self.is_model_unread:
            return Judgement.CANNOT_BE_JUDGED
        return Judgement.EQUAL if self.is_exact else Judgement.WITHIN_NOISE


def other_end(curve: ComparedCurve) -> Difference | None:
    """Return how a curve ends elsewhere, or that a model is missing."""
    if not curve.found:
        missing = Difference(curve=curve, expected="a value", found="none", is_of_end=True)
        return missing if curve.is_of_model else None
    if not curve.is_whole or len(curve.expected) < _MIN_STEPS:
        return None
    last, end = max(curve.expected), max(key for key, _ in curve.found)
    is_near = end < (*last[:-1], last[-1] + curve.gap) and sum(key > end for key in curve.expected) < 2
    ends = Difference(curve=curve, expected=shown_key(last), found=shown_key(end), is_of_end=True)
    return None if is_near else ends


def compare(references: Sequence[Observation], found: Observation, *, rounding: float = _ROUNDING) -> Comparison:
    """Compare a run with undisturbed ones, two or more if they can differ."""
    result = Comparison()
    for name, points in references[0].items():
        runs = [dict(_keyed(each.get(name, []), points)) for each in references]
        common = [key for key in runs[0] if all(key in each for each in runs)]
        if common:
            expected = {key: [each[key].value for each in runs] for key in common}
            curve = ComparedCurve(name=name, expected=expected, found=_keyed(found.get(name, []), points))
            result.add(curve, rounding)
    result.leave_out_means()
    return result


def _keyed(points: Sequence[Point], expected: Sequence[Point]) -> list[tuple[Key, Point]]:
    """Return points with keys: without counters, their number, which the last process counts from the end.

    A process that resumes after some steps prints the rest, so its last line is the last of all. Where the lines of a
    process between the first one and the last belong is not known.
    """
    arrays = [replace(each, value=np.asarray(each.value)) for each in points]
    if len({each.key for each in expected}) == len(expected):
        return [(each.key, each) for each in arrays]
    last = [each for each in arrays if each.process == arrays[-1].process > 0]
    numbered = [*enumerate(each for each in arrays if not each.process), *enumerate(last, len(expected) - len(last))]
    return [((float(at),), each) for at, each in numbered]


def distance(first: Any, second: Any) -> float:
    """Return the largest difference of two arrays; infinite if they differ and have none, such as texts and names."""
    if first.shape != second.shape or first.dtype.kind not in "fc" or second.dtype.kind == "U":
        return 0.0 if np.array_equal(first, second) else math.inf
    with np.errstate(invalid="ignore", over="ignore"):
        found = np.where(np.isclose(first, second, 0, 0, equal_nan=True), 0.0, np.abs(first - second))
    return float(np.nan_to_num(found.max(initial=0.0), nan=math.inf, posinf=math.inf))


def _size(value: Any) -> float:
    return 0.0 if value.dtype.kind == "U" else float(np.abs(value).max(where=np.isfinite(value), initial=0.0))


def shown_key(key: Key) -> str:
    """Return epoch and step as reports show them."""
    return "/".join(f"{each:g}" for each in key)


def _shown(value: Any) -> str:
    """Return a value as reports show it."""
    numbers = np.ravel(value)
    if numbers.dtype.kind == "U":
        return repr(str(numbers[0]) if len(numbers[0]) <= 16 else f"{numbers[0][:16]}...")
    if numbers.size == 1:
        return f"{numbers[0]:.8g}"
    return f"[{' '.join(f'{each:.6g}' for each in numbers[:4])}{' ...' if numbers.size > 4 else ''}]"
