"""Compares a disturbed run with undisturbed ones.

What all undisturbed runs have in common, to the last digit, a disturbed one has to have, too. Where they differ, five
of them show how much: a value that is further from all of them than three times their largest distance is different.
Names that no training gives its values measure something else if undisturbed runs differ in them. A resumed program may
print more or less than before: what both have is compared and counted.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from localvertex.commands.prove.numbers import Key, Point
from localvertex.commands.prove.outputs import UNREAD, Observation
from localvertex.jobs.job import PRIMARY

_ROUNDING = 1e-6
"""Relative difference that rounding explains."""
_FACTOR = 3.0
"""Times the largest distance between undisturbed runs."""
_NEIGHBOURS = 10
"""Keys before and after whose distances count, too: five runs show the noise of one step badly."""

_OF_TRAINING = re.compile(
    r"loss|acc|err|metric|auc|f1|lr|rate|grad|norm|mse|mae|ppl|perplex|score|reward|precision|recall|weight|val|train|test|nll",
    re.I,
)
_LEARNING_RATE = re.compile(r"(^|[^a-z])(lr|learning[ _-]?rate)([^a-z]|$)", re.I)
_EXAMPLES = re.compile(r"example|sample|ids?$|idx|indices|index|rows?$|batch|order|shard", re.I)


class Verdict(StrEnum):
    """How a disturbed run ended, compared with undisturbed ones."""

    EQUAL = "equal"
    WITHIN_NOISE = "equal within noise"
    DIFFERENT = "different"
    DID_NOT_FINISH = "did not finish"
    CANNOT_BE_JUDGED = "cannot be judged"


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The first value of a curve or file that is not as in undisturbed runs."""

    name: str
    key: Key = ()
    expected: str
    found: str

    def __str__(self) -> str:
        """Format it as a sentence."""
        at = f" at {'/'.join(f'{each:g}' for each in self.key)}" if self.key else ""
        return f"{label(self.name)}{at}: {self.found} instead of {self.expected}"


@dataclass(kw_only=True)
class Comparison:
    """What was compared, and what differs."""

    differences: list[Difference] = field(default_factory=list)
    num_compared: int = 0
    """Values after the first restart, and values of files."""
    is_exact: bool = True
    """Whether nothing needed the noise or rounding to be equal."""
    steps_lost: int = 0
    """Logged by a second process again."""
    steps_missing: int = 0
    """Logged by no process, at the end or beyond a line for each restart."""
    examples_repeated: int | None = None
    """More often than in an undisturbed run; None: no log has examples."""
    examples_never_seen: int | None = None
    not_compared: list[str] = field(default_factory=list)
    """Files that differ and that no reader reads."""

    def add(
        self, name: str, references: list[dict[Key, Point]], found: list[tuple[Key, Point]], rounding: float
    ) -> None:
        """Compare a curve, or a value of a file."""
        keys = [key for key in references[0] if all(key in each for each in references)]
        values = {key: [each[key].value for each in references] for key in keys}
        own = [max(distance(each, values[key][0]) for each in values[key]) for key in keys]
        value: Any = values[keys[0]][0] if keys else None
        # One number without a step may count anything, such as the starts.
        is_array = isinstance(value, str) or ("/" in name and np.ndim(value) > 0)
        is_vague = any(own) or (keys == [()] and not is_array)
        if not keys or (is_vague and not is_compared(name, {name: [*references[0].values()]})):
            return
        if not found and "/model/" in name:
            self.differences.append(Difference(name=name, expected="a value", found="none"))
        index, seen, num_lost = {key: at for at, key in enumerate(keys)}, dict[Key, Point](), 0
        first: Difference | None = None
        for key, point in found:
            num_lost += key in seen and seen[key].process < point.process
            seen[key] = point
            if key not in index or np.shape(values[key][0]) != np.shape(point.value):
                continue
            noise = max(own[max(0, index[key] - _NEIGHBOURS) : index[key] + _NEIGHBOURS + 1])
            nearest = min(distance(each, point.value) for each in values[key])
            if noise == math.inf or (nearest and isinstance(point.value, str) and point.value.startswith(UNREAD)):
                self.not_compared += [label(name)] if noise < math.inf else []
                continue
            self.num_compared += point.process > 0 or found[-1][1].process == 0
            if 0 < nearest <= rounding * max(map(_size, values[key])) + _FACTOR * noise:
                self.is_exact = False
            elif nearest and first is None:
                first = Difference(name=name, key=point.key, expected=shown(values[key][0]), found=shown(point.value))
        gap = keys[-1][-1] - keys[-2][-1] if len(keys) > 1 and keys[-1] else 1.0
        self.steps_lost = max(self.steps_lost, round(num_lost * max(1.0, gap)))
        if _EXAMPLES.search(name.rpartition("|")[2]) and found and np.size(found[0][1].value) > 1:
            before, after = (
                Counter(x for each in points.values() for x in np.ravel(each.value).tolist())
                for points in (references[0], seen)
            )
            self.examples_repeated = (after - before).total()
            self.examples_never_seen = len(before.keys() - after.keys())
        # The job ends with the primary replica, wherever the others are; an event has as many steps as its time allows.
        is_whole = name.startswith(f"{PRIMARY}|") or not name.startswith("workerpool")
        is_whole &= "|event " not in name
        if len(keys) > 2 and seen and is_whole and is_of_training(name):
            missing = [key for key in keys if key > max(seen)]
            # A program may log every tenth step from where it resumed, and a kill may take the last line of a process.
            inner = len({*keys} - {*seen} - {*missing}) if {*seen} <= {*keys} else 0
            gone = len(missing) * (len(missing) > 1) + inner * (inner > 1 + found[-1][1].process)
            self.steps_missing = max(self.steps_missing, gone)
            end = (*keys[-1][:-1], keys[-1][-1] + max(1.0, gap))
            if first is None and (len(missing) > 1 or max(seen) >= end):
                first = Difference(name=f"{name} (last)", expected=shown(max(keys)), found=shown(max(seen)))
        self.differences += [first] if first else []

    @property
    def verdict(self) -> Verdict:
        """Judge a run that has finished."""
        if self.differences:
            return Verdict.DIFFERENT
        if not self.num_compared:
            return Verdict.CANNOT_BE_JUDGED
        return Verdict.EQUAL if self.is_exact else Verdict.WITHIN_NOISE

    @property
    def learning_rate(self) -> Difference | None:
        """The first other learning rate."""
        return next((each for each in self.differences if _LEARNING_RATE.search(label(each.name))), None)

    @property
    def examples(self) -> Difference | None:
        """The first step with other examples, or another digest of them."""
        found = [each for each in self.differences if _EXAMPLES.search(each.name.rpartition("|")[2])]
        return next((each for each in found if each.found.startswith(("[", "'"))), None)


def label(name: str) -> str:
    """Return the name of a value for readers: of a file with its path."""
    first, *_, last = name.split("|")
    return f"{first} {last}".strip() if "/" in first else last


def is_of_training(name: str) -> bool:
    """Return whether a value has a name that trainings use for losses, metrics and weights."""
    return bool(_OF_TRAINING.search(name.rpartition("|")[2]))


def is_compared(name: str, found: Observation) -> bool:
    """Return whether a value is compared even if undisturbed runs differ in it: one of a training, or an array."""
    return is_of_training(name) or np.size(found[name][0].value) > 1


def compare(references: Sequence[Observation], found: Observation, *, rounding: float = _ROUNDING) -> Comparison:
    """Compare a run with undisturbed ones, two or more if they can differ."""
    result = Comparison()
    for name, points in references[0].items():
        if all(name in each for each in references):
            has_counters = counts(points)
            expected = [dict(keyed(each[name], has_counters, len(each[name]))) for each in references]
            result.add(name, expected, keyed(found.get(name, []), has_counters, len(points)), rounding)
    return result


def counts(points: Sequence[Point]) -> bool:
    """Return whether the counters of a curve say which value each is."""
    return len({each.key for each in points}) == len(points)


def keyed(points: Sequence[Point], has_counters: bool, num_expected: int) -> list[tuple[Key, Point]]:
    """Return points with keys: without counters, their number, which the last process counts from the end.

    A process that resumes after some steps prints the rest, so its last line is the last of all. Where the lines of a
    process between the first one and the last belong is not known.
    """
    if has_counters or not points:
        return [(each.key, each) for each in points]
    last = points[-1].process
    own = [each for each in points if each.process == last]
    begin = num_expected - len(own) if last else 0
    first = [each for each in points if each.process == 0 < last]
    return [((float(at),), each) for at, each in [*enumerate(first), *enumerate(own, begin)]]


def distance(first: Any, second: Any) -> float:
    """Return the largest difference of two values; infinite if they differ and have none, such as texts and names."""
    if isinstance(first, str) or isinstance(second, str):
        return 0.0 if first == second else math.inf
    if first.shape != second.shape or first.dtype.kind not in "fc":
        return 0.0 if np.array_equal(first, second) else math.inf
    with np.errstate(invalid="ignore", over="ignore"):
        found = np.where((first == second) | (np.isnan(first) & np.isnan(second)), 0.0, np.abs(first - second))
    largest = float(found.max(initial=0.0))
    return largest if math.isfinite(largest) else math.inf


def _size(value: Any) -> float:
    return (
        0.0
        if isinstance(value, str) or value.dtype.kind not in "fc"
        else float(np.nan_to_num(np.abs(value)).max(initial=0))
    )


def shown(value: Any) -> str:
    """Return a value as reports show it."""
    if isinstance(value, str):
        return repr(f"{value[:16]}..." if len(value) > 16 else value)
    numbers = np.ravel(value)
    if numbers.size == 1:
        return f"{numbers[0]:.8g}"
    return f"[{' '.join(f'{each:.6g}' for each in numbers[:4])}{' ...' if numbers.size > 4 else ''}]"
