"""Judges predictions: the value of a metric, whether the model has learnt anything, and which model is better.

Classes are judged as in the image pipeline. Numbers and scores are compared with the best constant answer, and with the
model's own answers shuffled; two models with a permutation test, which exchanges both models' answers.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from components.any_code.evidence import Examples, Line
from localvertex._base.userinput.errors import UserError
from trainer.models.metrics import ACCURACY
from trainer.results.baseline import Judgement, Verdict, judge
from trainer.results.comparison.decision import decide, scores_of
from trainer.results.significance import SIGNIFICANCE

Array = npt.NDArray[Any]

_FEWEST = 21
"""Minimum number of examples that show whether a model has learnt anything, as for classes."""
_NUM_PERMUTATIONS = 999
_SEED = 20_261_123
_SMALLEST = 1e-15
"""Probability that a logarithm can take."""
_MAX_CLASSES = 20
"""Labels of a metric with an unknown name are classes up to this number; more are measurements."""


@dataclass(frozen=True, kw_only=True)
class _Classes:
    """A metric of classes: `decides`, of `trainer.models.metrics`, judges and compares."""

    decides: str
    rates: Callable[[Array, Array, Array], Array] | None = None
    """Takes the numbers of right answers, examples and answers per class [K]; None: the accuracy itself."""
    is_error: bool = False
    has_other_averages: bool = False
    """Whether the metric may also be the weighted mean, or the value of one of two classes."""
    answer: str = "prediction"
    """Field of the lines with the answer."""

    def values(self, found: Examples) -> list[float]:
        """Return the values that result.json may have, by the averages in use; the new model answers everything."""
        _, labels, (answers,) = _numbered(found.labels, found.own)
        num_classes = int(labels.max()) + 1
        right, count, predicted = (
            np.bincount(each, minlength=num_classes)[:num_classes]
            for each in (labels[answers == labels], labels, answers)
        )
        accuracy = float((answers == labels).mean())
        if self.rates is None:
            return [1 - accuracy if self.is_error else accuracy]
        rates = self.rates(right, count, predicted)
        # scikit-learn includes classes that occur only in the answers.
        num_all = len({*found.labels, *(line["prediction"] for line in found.own if line)})
        values = [rates.mean(), rates.sum() / num_all]
        if self.has_other_averages:
            values += [accuracy, rates @ count / count.sum(), *(rates if num_classes == 2 else ())]
        return [*map(float, values)]

    def judge(self, found: Examples) -> Judgement:
        """Compare the new model with the best constant answer and with guessing."""
        classes, labels, (answers,) = _numbered(found.labels, found.own)
        constant = int(np.bincount(labels).argmax())
        return judge(self.decides, labels, answers, constant, [*classes, "another class"])

    def compare(self, found: Examples, *, must_improve: bool) -> tuple[bool, str]:
        """Return whether the new model is better than the champion, and why."""
        classes, labels, (champion, own) = _numbered(found.labels, found.champion, found.own)
        # The new model is wrong without an answer, the champion is right.
        champion = np.where([line is None for line in found.champion], labels, champion)
        table, scores = scores_of(self.decides, labels, champion, own, len(classes))
        is_better, reason = decide(table, max_regression=0.0, must_improve=must_improve, scores=scores)
        if not scores.difference:
            return False, f"{reason}, so the champion stays"
        return is_better, reason


def _numbered(labels: Sequence[str], *models: Sequence[Line | None]) -> tuple[list[str], Array, list[Array]]:
    """Return the classes, the true one of each example as a number, and likewise the answers; K is any other."""
    classes = {name: number for number, name in enumerate(sorted(set(labels)))}
    answers = [
        np.array([classes.get(line["prediction"], len(classes)) if line else len(classes) for line in lines], np.int64)
        for lines in models
    ]
    return [*classes], np.array([classes[name] for name in labels], np.int64), answers


@dataclass(frozen=True, kw_only=True)
class _Numbers:
    """A metric of numbers: labels float [N], answers [N], or [N, K] for the probabilities of K classes."""

    name: str
    value: Callable[[Array, Array], float]
    constant: Callable[[Array], Array]
    """Returns the best answers that ignore the input."""
    is_error: bool = True
    answer: str = "prediction"

    def values(self, found: Examples) -> list[float]:
        labels, (own,) = self._read(found, found.own)
        return [self.value(labels, own)]

    def judge(self, found: Examples) -> Judgement:
        labels, (own,) = self._read(found, found.own)
        value, reference = self._pair(labels, own, self.constant(labels))
        reason = (
            f"{self.name} {value:.4g} on {len(labels):,} test examples, {reference:.4g} by the best constant answer"
        )
        if self._lead(value, reference) <= 0 and len(labels) >= _FEWEST:
            return Judgement(verdict=Verdict.NOT_BETTER, reason=f"not better than a constant answer: {reason}")
        random = np.random.default_rng(_SEED)
        shuffled = (self.value(labels, own[random.permutation(len(own))]) for _ in range(_NUM_PERMUTATIONS))
        p_value = (1 + sum(not self._lead(value, each) > 0 for each in shuffled)) / (1 + _NUM_PERMUTATIONS)
        if p_value < SIGNIFICANCE:
            # Both, as for classes: noise is often about as good as the constant, and sometimes better than shuffled.
            p_value = max(p_value, self._p_exchanged(labels, own, self.constant(labels)))
        reason += f" (p = {p_value:.2g})"
        if p_value < SIGNIFICANCE and len(labels) >= _FEWEST:
            return Judgement(verdict=Verdict.BETTER, reason=reason)
        reason = f"too few test examples to tell whether the model has learnt anything: {reason}"
        return Judgement(verdict=Verdict.UNDECIDED, reason=reason)

    def compare(self, found: Examples, *, must_improve: bool) -> tuple[bool, str]:
        labels, (champion, own) = self._read(found, found.champion, found.own)
        value, reference = self.value(labels, own), self.value(labels, champion)
        lead, p_value = self._lead(value, reference), self._p_exchanged(labels, own, champion, is_two_sided=True)
        reason = f"{self.name} {value:.4g} against {reference:.4g} on {len(labels):,} examples: "
        if not lead > 0:
            return False, f"{reason}{'worse' if lead < 0 else f'as good (p = {p_value:.2g}), so the champion stays'}"
        if must_improve and p_value >= SIGNIFICANCE:
            return False, f"{reason}not better with p < {SIGNIFICANCE:g} (p = {p_value:.2g}), as must_improve requires"
        return True, f"{reason}better (p = {p_value:.2g})"

    def _p_exchanged(self, labels: Array, own: Array, other: Array, *, is_two_sided: bool = False) -> float:
        """Return the probability of such a lead if the answers of each example were exchanged at random."""
        observed, random, num_as_large = self._lead(*self._pair(labels, own, other)), np.random.default_rng(_SEED), 1
        for _ in range(_NUM_PERMUTATIONS):
            kept = (random.random(len(labels)) < 0.5).reshape(-1, *[1] * (own.ndim - 1))
            lead = self._lead(*self._pair(labels, np.where(kept, own, other), np.where(kept, other, own)))
            # Not NaN, which is no evidence.
            num_as_large += not (abs(lead) < abs(observed) if is_two_sided else lead < observed)
        return num_as_large / (1 + _NUM_PERMUTATIONS)

    def _pair(self, labels: Array, own: Array, other: Array) -> tuple[float, float]:
        return self.value(labels, own), self.value(labels, other)

    def _lead(self, value: float, other: float) -> float:
        return other - value if self.is_error else value - other

    def _read(self, found: Examples, *models: Sequence[Line | None]) -> tuple[Array, list[Array]]:
        """Return the labels and the answers; without one, the new model is as wrong as any, and the champion right."""
        if self.answer == "score":
            return self._read_scores(found, *models)
        labels = _floats(found.labels, "label")
        answers = [
            _floats((line["prediction"] if line else label for line, label in zip(each, found.labels, strict=True)))
            for each in models
        ]
        if missing := [line is None for line in found.own]:
            errors = max(float(np.abs(each - labels).max()) for each in answers)
            answers[-1] = np.where(missing, labels + errors, answers[-1])
        return labels, answers

    def _read_scores(self, found: Examples, *models: Sequence[Line | None]) -> tuple[Array, list[Array]]:
        rows = [line["score"] for each in models for line in each if line]
        names = {*found.labels, *(str(name) for row in rows if isinstance(row, dict) for name in row)}
        classes = {name: number for number, name in enumerate(sorted(names, key=_by_number))}
        labels = np.array([classes[name] for name in found.labels], np.int64)
        if self.name != "log-loss" and len(classes) > 2:
            raise UserError(f"{self.name} is known for two classes; predictions have {len(classes)}")

        def row(line: Line | None, label: int, *, is_own: bool) -> list[float]:
            if line is None:
                return [float((number == label) is not is_own) for number in range(len(classes))]
            score = line["score"]
            if isinstance(score, dict):
                given = {str(name): value for name, value in score.items()}
                return [float(given.get(name, 0)) for name in classes]
            return [1 - float(score), float(score)][: len(classes)]

        def read(each: Sequence[Line | None]) -> Array:
            is_own = each is found.own
            return np.array([row(line, int(label), is_own=is_own) for line, label in zip(each, labels, strict=True)])

        try:
            answers = [read(each) for each in models]
            is_wrong = any(not np.isfinite(each).all() or each.shape[1:] != (len(classes),) for each in answers)
        except (TypeError, ValueError, OverflowError):
            is_wrong = True
        if is_wrong or any(self.is_error and (each.min() < 0 or each.max() > 1) for each in answers if each.size):
            raise UserError("a score is wrong; expected the probability of the last of two classes, or of each by name")
        return labels, answers


def _floats(texts: Iterable[str], what: str = "prediction") -> Array:
    try:
        found = np.array([*map(float, texts)])
    except ValueError as error:
        raise UserError(f"a {what} is no number ({error}); the metric is one of numbers") from None
    if not np.isfinite(found).all():
        raise UserError(f"a {what} is infinite or NaN; the metric is one of finite numbers")
    return found


def _by_number(name: str) -> tuple[float, str]:
    try:
        return float(name), name
    except ValueError:
        return np.inf, name


def _squares(labels: Array, answers: Array) -> float:
    return float(((labels - answers) ** 2).mean())


def _roc_auc(labels: Array, scores: Array) -> float:
    from scipy import stats

    positive = labels == 1
    num = positive.sum(), (~positive).sum()
    if not min(num):
        return float("nan")
    rank_sum = stats.rankdata(scores[:, -1])[positive].sum()
    return float((rank_sum - num[0] * (num[0] + 1) / 2) / (num[0] * num[1]))


def _average_precision(labels: Array, scores: Array) -> float:
    order = np.argsort(-scores[:, -1], kind="stable")
    ends = np.flatnonzero(np.append(np.diff(scores[order, -1]) != 0, True))
    num_found = np.cumsum(labels[order] == 1)
    if not num_found.size or not num_found[-1]:
        return float("nan")
    recalls = num_found[ends] / num_found[-1]
    return float((np.diff(recalls, prepend=0) * num_found[ends] / (ends + 1)).sum())


def _log_loss(labels: Array, scores: Array) -> float:
    return float(-np.log(np.clip(scores[np.arange(len(labels)), labels], _SMALLEST, 1)).mean())


def _frequencies(labels: Array) -> Array:
    return np.tile(np.bincount(labels, minlength=2) / max(1, len(labels)), (len(labels), 1))


def _like(of: Callable[[Array], Any]) -> Callable[[Array], Array]:
    return lambda labels: np.full_like(labels, of(labels))


Measure = _Classes | _Numbers
"""A metric that predictions show; both have the same methods, which `_Classes` describes."""
_MEASURES: dict[str, Measure] = {
    "accuracy": _Classes(decides=ACCURACY),
    "error-rate": _Classes(decides=ACCURACY, is_error=True),
    "balanced-accuracy": _Classes(decides="balanced-accuracy", rates=lambda right, count, _: right / count),
    "macro-f1": _Classes(decides="macro-f1", rates=lambda right, count, predicted: 2 * right / (count + predicted)),
    "f1": _Classes(
        decides="macro-f1",
        rates=lambda right, count, predicted: 2 * right / (count + predicted),
        has_other_averages=True,
    ),
    "precision": _Classes(
        decides="macro-f1",
        rates=lambda right, count, predicted: right / np.maximum(1, predicted),
        has_other_averages=True,
    ),
    "recall": _Classes(decides="macro-f1", rates=lambda right, count, _: right / count, has_other_averages=True),
    "mse": _Numbers(name="mse", value=_squares, constant=_like(np.mean)),
    "rmse": _Numbers(name="rmse", value=lambda *given: _squares(*given) ** 0.5, constant=_like(np.mean)),
    "mae": _Numbers(
        name="mae", value=lambda labels, answers: float(np.abs(labels - answers).mean()), constant=_like(np.median)
    ),
    "r2": _Numbers(
        name="r2",
        value=lambda labels, answers: 1 - _squares(labels, answers) / max(float(labels.var()), _SMALLEST),
        constant=_like(np.mean),
        is_error=False,
    ),
    "roc-auc": _Numbers(name="roc-auc", value=_roc_auc, constant=_frequencies, is_error=False, answer="score"),
    "average-precision": _Numbers(
        name="average-precision", value=_average_precision, constant=_frequencies, is_error=False, answer="score"
    ),
    "log-loss": _Numbers(name="log-loss", value=_log_loss, constant=_frequencies, answer="score"),
    "brier": _Numbers(
        name="brier",
        value=lambda labels, scores: _squares(labels == 1, scores[:, -1]),
        constant=_frequencies,
        answer="score",
    ),
}


def measure_of(name: str, labels: Iterable[str]) -> Measure | None:
    """Return a measure by its name; None for an empty name, and by the kind of the labels for `any`."""
    if name != "any":
        return _MEASURES.get(name)
    found = Counter(labels)
    is_number = len(found) > _MAX_CLASSES and all(_by_number(each)[0] < np.inf for each in found)
    return _MEASURES["rmse" if is_number else "balanced-accuracy"]
