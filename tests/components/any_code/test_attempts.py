"""Attempts to make a worse or useless model the champion, and right models that must become it.

Each champion is registered once; each attempt is a run of its own against it, by the step `compare`.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from components.compare.promotion import Outcome
from components.registry.registry import Registry
from localvertex._base.userinput.errors import UserError
from tests.support.any_code_run import NAME, AnyCodeRun
from vertex_testing.server import Server

PROMOTED, REFUSED, UNDECIDED, INVALID = "promoted", "refused", "registered without alias", "invalid"
NUM = 400
RANDOM = np.random.default_rng(7)
LABELS = RANDOM.integers(0, 2, NUM)
HARD = RANDOM.permutation(NUM)
"""Examples in the order in which a model gets them wrong."""
NUMBERS = RANDOM.normal(size=NUM)
NOISE = RANDOM.normal(size=NUM)
Lines = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """What a run has written, how it is compared, and what must come of it."""

    expected: str
    metrics: dict[str, Any]
    lines: Lines | None = None
    of_champion: Lines | None = None
    parameters: dict[str, Any] = field(default_factory=dict)


def classes(num_wrong: int, *, first: int = 0, last: int = NUM, offset: int = 0, text: str = "{}") -> Lines:
    """Lines of a model that is wrong for so many of the examples from `first` to `last`; ids begin at `offset`."""
    wrong = set([each for each in HARD.tolist() if first <= each < last][:num_wrong])
    return [
        {
            "id": text.format(number + offset) if text != "{}" else number + offset,
            "label": int(LABELS[number]),
            "prediction": int(LABELS[number] ^ (number in wrong)),
        }
        for number in range(first, last)
    ]


def of_split(lines: Lines, split: str, chosen: Callable[[dict[str, Any]], bool]) -> Lines:
    return [line | {"split": split} if chosen(line) else line for line in lines]


def is_wrong(line: dict[str, Any]) -> bool:
    return bool(line["label"] != line["prediction"])


def relabelled(lines: Lines, num: int) -> Lines:
    return [line | {"label": 1 - line["label"]} if line["id"] in HARD[-num:] else line for line in lines]


def numbers(scale: float, *, constant: float | None = None) -> Lines:
    """Lines of a regression with normal errors, or of a constant."""
    answers = NUMBERS + scale * NOISE if constant is None else np.full(NUM, constant)
    return [
        {"id": number, "label": float(label), "prediction": float(answer)}
        for number, (label, answer) in enumerate(zip(NUMBERS, answers, strict=True))
    ]


def rmse(lines: Lines) -> float:
    return float(np.mean([(line["label"] - line["prediction"]) ** 2 for line in lines]) ** 0.5)


def scores(lead: float, *, field_name: str = "score") -> Lines:
    """Lines of a model whose scores of both classes differ by `lead`, always with the answer 0."""
    found = 1 / (1 + np.exp(-(lead * (LABELS - 0.5) + NOISE)))
    return [
        {"id": number, "label": int(LABELS[number]), "prediction": 0, field_name: float(score)}
        for number, score in enumerate(found)
    ]


def auc(lines: Lines) -> float:
    from scipy import stats

    ranks = stats.rankdata([line["score"] for line in lines])
    positive = LABELS == 1
    num = int(positive.sum())
    return float((ranks[positive].sum() - num * (num + 1) / 2) / (num * (NUM - num)))


def right(num_wrong: int, num: int = NUM) -> dict[str, float]:
    return {"accuracy": 1 - num_wrong / num}


FORCE = {"force_promotion": True}
BAD, GOOD, BEST = 165, 50, 20
"""Wrong answers of models with an accuracy of 0.5875, of the champion (0.875), and of a better one."""

ALWAYS_0 = [line | {"prediction": 0} for line in classes(0)]
SHARE_0 = float((LABELS == 0).mean())
RANDOM_ANSWERS = [line | {"prediction": int(answer)} for line, answer in zip(classes(0), NOISE > 0, strict=True)]
NOISE_SHARE = float(((NOISE > 0) == LABELS).mean())

AGAINST_CLASSES = {
    # Evidence withheld.
    "no predictions, claims 0.99": Attempt(expected=UNDECIDED, metrics={"accuracy": 0.99}),
    "empty predictions, claims 0.99": Attempt(expected=UNDECIDED, metrics={"accuracy": 0.99}, lines=[]),
    "only 150 that it gets right": Attempt(
        expected=UNDECIDED, metrics={"accuracy": 1}, lines=[each for each in classes(BAD) if not is_wrong(each)][:150]
    ),
    "only what it gets right": Attempt(
        expected=REFUSED, metrics={"accuracy": 1}, lines=[each for each in classes(BAD) if not is_wrong(each)]
    ),
    "marks its errors as train": Attempt(
        expected=REFUSED, metrics={"accuracy": 1}, lines=of_split(classes(BAD), "train", is_wrong)
    ),
    "marks half as train": Attempt(
        expected=UNDECIDED,
        metrics={"accuracy": 1},
        lines=of_split(classes(0), "train", lambda line: line["id"] % 2 == 0 or line["id"] < 9),
    ),
    "other ids, no predictions of the champion": Attempt(
        expected=UNDECIDED, metrics={"accuracy": 1}, lines=classes(0, offset=NUM)
    ),
    "other answers of the champion than its own": Attempt(
        expected=UNDECIDED,
        metrics={"accuracy": 1},
        lines=classes(0, first=250) + classes(0, first=0, last=200, offset=NUM),
        of_champion=classes(100, first=250) + classes(150, first=0, last=200, offset=NUM),
    ),
    "few predictions of the champion": Attempt(
        expected=REFUSED,
        metrics=right(BAD),
        lines=classes(BAD, offset=NUM),
        of_champion=[each for each in classes(GOOD, offset=NUM) if is_wrong(each)],
    ),
    "worse on a new test set": Attempt(
        expected=REFUSED, metrics=right(BAD), lines=classes(BAD, offset=NUM), of_champion=classes(GOOD, offset=NUM)
    ),
    "other labels for its errors": Attempt(
        expected=UNDECIDED,
        metrics={"accuracy": 1},
        lines=[line | {"label": line["prediction"]} for line in classes(BAD)],
    ),
    # Claims.
    "claims what it does not show": Attempt(expected=REFUSED, metrics={"accuracy": 0.95}, lines=classes(BAD)),
    "claims it above minimum_metric": Attempt(
        expected=REFUSED, metrics={"accuracy": 0.95}, lines=classes(BAD), parameters={"minimum_metric": "0.8"}
    ),
    "percent": Attempt(expected=INVALID, metrics={"accuracy": 60.0}, lines=classes(BAD)),
    "a minimum in percent": Attempt(
        expected=INVALID, metrics=right(BEST), lines=classes(BEST), parameters={"minimum_metric": "80"}
    ),
    "accuracy with minimize": Attempt(
        expected=INVALID, metrics=right(BAD), lines=classes(BAD), parameters={"direction": "minimize"}
    ),
    "NaN beside it": Attempt(expected=REFUSED, metrics=right(BEST) | {"loss": float("nan")}, lines=classes(BEST)),
    "401 digits beside it": Attempt(expected=REFUSED, metrics=right(BEST) | {"n": 10**400}, lines=classes(BEST)),
    "401 digits": Attempt(expected=INVALID, metrics={"accuracy": 10**400}, lines=classes(BEST)),
    "always one class": Attempt(expected=REFUSED, metrics={"accuracy": SHARE_0}, lines=ALWAYS_0),
    "guesses": Attempt(expected=REFUSED, metrics={"accuracy": NOISE_SHARE}, lines=RANDOM_ANSWERS),
    # Lines.
    "worse, split Test": Attempt(
        expected=REFUSED, metrics=right(BAD), lines=of_split(classes(BAD), "Test", lambda line: True)
    ),
    "an unknown split": Attempt(
        expected=INVALID, metrics=right(BEST), lines=of_split(classes(BEST), "holdout", is_wrong)
    ),
    "all seen": Attempt(
        expected=UNDECIDED, metrics=right(BEST), lines=classes(BEST) + of_split(classes(0), "train", lambda line: True)
    ),
    "all of another split": Attempt(
        expected=UNDECIDED, metrics=right(BEST), lines=of_split(classes(BEST), "train", lambda line: True)
    ),
    "as good": Attempt(expected=REFUSED, metrics=right(GOOD), lines=classes(GOOD)),
    "worse": Attempt(expected=REFUSED, metrics=right(BAD), lines=classes(BAD)),
    "too many corrected labels": Attempt(
        expected=UNDECIDED, metrics={"accuracy": 1 - (BEST + 20) / NUM}, lines=relabelled(classes(BEST), 20)
    ),
    # Right models.
    "better": Attempt(expected=PROMOTED, metrics=right(BEST), lines=classes(BEST)),
    "better, rounded": Attempt(expected=PROMOTED, metrics={"accuracy": 0.95}, lines=classes(BEST + 1)),
    "better, ids as texts": Attempt(expected=PROMOTED, metrics=right(BEST), lines=classes(BEST, text="{:04}")),
    "better, ids with spaces": Attempt(expected=PROMOTED, metrics=right(BEST), lines=classes(BEST, text=" {}\n")),
    "better, one corrected label": Attempt(
        expected=PROMOTED, metrics={"accuracy": 1 - (BEST + 1) / NUM}, lines=relabelled(classes(BEST), 1)
    ),
    "better, split TESTING": Attempt(
        expected=PROMOTED, metrics=right(BEST), lines=of_split(classes(BEST), "TESTING ", lambda line: True)
    ),
    "better, with seen ones": Attempt(
        expected=PROMOTED,
        metrics=right(BEST),
        lines=classes(BEST) + of_split(classes(0, offset=NUM), "train", lambda line: True),
    ),
    "better although some are missing": Attempt(expected=PROMOTED, metrics=right(8, 380), lines=classes(8, last=380)),
    "better on a new test set": Attempt(
        expected=PROMOTED, metrics=right(BEST), lines=classes(BEST, offset=NUM), of_champion=classes(BAD, offset=NUM)
    ),
    "better on a test set that moves": Attempt(
        expected=PROMOTED,
        metrics=right(BEST, 300),
        lines=classes(BEST // 2, first=250) + classes(BEST // 2, first=0, last=150, offset=NUM),
        of_champion=classes(GOOD, first=0)[250:] + classes(40, first=0, last=150, offset=NUM),
    ),
    "worse by force": Attempt(expected=PROMOTED, metrics=right(BAD), lines=classes(BAD), parameters=FORCE),
    "constant by force": Attempt(expected=PROMOTED, metrics={"accuracy": SHARE_0}, lines=ALWAYS_0, parameters=FORCE),
    "without evidence by force": Attempt(expected=PROMOTED, metrics={"accuracy": 0.99}, parameters=FORCE),
}

RMSE = {"metric": "rmse", "direction": ""}
AGAINST_NUMBERS = {
    "the mean": Attempt(
        expected=REFUSED,
        metrics={"rmse": rmse(numbers(0, constant=float(NUMBERS.mean())))},
        lines=numbers(0, constant=float(NUMBERS.mean())),
        parameters=RMSE,
    ),
    "noise": Attempt(
        expected=REFUSED,
        metrics={
            "rmse": rmse([line | {"prediction": float(each)} for line, each in zip(numbers(0), NOISE, strict=True)])
        },
        lines=[line | {"prediction": float(each)} for line, each in zip(numbers(0), NOISE, strict=True)],
        parameters=RMSE,
    ),
    "worse": Attempt(expected=REFUSED, metrics={"rmse": rmse(numbers(0.5))}, lines=numbers(0.5), parameters=RMSE),
    "a false figure": Attempt(expected=REFUSED, metrics={"rmse": 0.01}, lines=numbers(0.5), parameters=RMSE),
    "no predictions": Attempt(expected=UNDECIDED, metrics={"rmse": 0.01}, parameters=RMSE),
    "a negative one": Attempt(expected=INVALID, metrics={"rmse": -1.0}, lines=numbers(0.1), parameters=RMSE),
    "maximize": Attempt(
        expected=INVALID,
        metrics={"rmse": rmse(numbers(0.5))},
        lines=numbers(0.5),
        parameters=RMSE | {"direction": "maximize"},
    ),
    "only its best": Attempt(
        expected=REFUSED,
        metrics={"rmse": rmse([each for each in numbers(0.5) if abs(NOISE[each["id"]]) < 0.7])},
        lines=[each for each in numbers(0.5) if abs(NOISE[each["id"]]) < 0.7],
        parameters=RMSE,
    ),
    "words": Attempt(
        expected=INVALID, metrics={"rmse": 0.1}, lines=[{"id": 1, "label": "a", "prediction": "b"}] * 1, parameters=RMSE
    ),
    "better": Attempt(expected=PROMOTED, metrics={"rmse": rmse(numbers(0.2))}, lines=numbers(0.2), parameters=RMSE),
    "better, significantly": Attempt(
        expected=PROMOTED,
        metrics={"rmse": rmse(numbers(0.2))},
        lines=numbers(0.2),
        parameters=RMSE | {"must_improve": True},
    ),
    "better, its name spelt otherwise": Attempt(
        expected=PROMOTED,
        metrics={"rmse": rmse(numbers(0.2)), "loss": 0.1},
        lines=numbers(0.2),
        parameters=RMSE,
    ),
}

AUC = {"metric": "roc_auc", "direction": ""}
AGAINST_SCORES = {
    "chance": Attempt(expected=REFUSED, metrics={"roc_auc": auc(scores(-0.05))}, lines=scores(-0.05), parameters=AUC),
    "worse": Attempt(expected=REFUSED, metrics={"roc_auc": auc(scores(1))}, lines=scores(1), parameters=AUC),
    "a false figure": Attempt(expected=REFUSED, metrics={"roc_auc": 0.99}, lines=scores(1), parameters=AUC),
    "without scores": Attempt(
        expected=UNDECIDED, metrics={"roc_auc": 0.99}, lines=scores(3, field_name="logit"), parameters=AUC
    ),
    "better": Attempt(expected=PROMOTED, metrics={"roc_auc": auc(scores(3))}, lines=scores(3), parameters=AUC),
}

LOSS = {"metric": "loss", "direction": ""}
AGAINST_FIGURES = {
    "a higher loss": Attempt(expected=REFUSED, metrics={"loss": 0.9}, parameters=LOSS),
    "a higher loss with maximize": Attempt(
        expected=INVALID, metrics={"loss": 0.9}, parameters=LOSS | {"direction": "maximize"}
    ),
    "a lower loss": Attempt(expected=PROMOTED, metrics={"loss": 0.2}, parameters=LOSS),
    "an unknown name": Attempt(
        expected=INVALID, metrics={"goodness": 2.0}, parameters={"metric": "goodness", "direction": ""}
    ),
}

FIRST = {
    "Accuracy, always one class": Attempt(
        expected=REFUSED, metrics={"Accuracy": SHARE_0}, lines=ALWAYS_0, parameters={"metric": "Accuracy"}
    ),
    "val_accuracy, always one class": Attempt(
        expected=REFUSED, metrics={"val_accuracy": 0.99}, lines=ALWAYS_0, parameters={"metric": "val_accuracy"}
    ),
    "f1, always one class": Attempt(
        expected=REFUSED, metrics={"f1": 0.66}, lines=ALWAYS_0, parameters={"metric": "f1"}
    ),
    "another name, always one class": Attempt(
        expected=REFUSED, metrics={"goodness": 0.99}, lines=ALWAYS_0, parameters={"metric": "goodness"}
    ),
    "f1": Attempt(
        expected=PROMOTED, metrics={"f1": 0.95}, lines=classes(BEST), parameters={"metric": "f1", "direction": ""}
    ),
    "log loss of noise": Attempt(
        expected=REFUSED, metrics={"log_loss": 0.9}, lines=scores(0), parameters={"metric": "log_loss", "direction": ""}
    ),
    "a blank last line": Attempt(expected=PROMOTED, metrics=right(BEST), lines=[*classes(BEST), {}]),
}

CHAMPIONS = {
    "classes": (Attempt(expected=PROMOTED, metrics=right(GOOD), lines=classes(GOOD)), AGAINST_CLASSES),
    "numbers": (
        Attempt(expected=PROMOTED, metrics={"rmse": rmse(numbers(0.3))}, lines=numbers(0.3), parameters=RMSE),
        AGAINST_NUMBERS,
    ),
    "scores": (
        Attempt(expected=PROMOTED, metrics={"roc_auc": auc(scores(2))}, lines=scores(2), parameters=AUC),
        AGAINST_SCORES,
    ),
    "figures": (Attempt(expected=PROMOTED, metrics={"loss": 0.3}, parameters=LOSS), AGAINST_FIGURES),
    "none": (None, FIRST),
}


class Runs:
    """Runs with numbers."""

    def __init__(self, folder: Path, server: Server, registry: Registry) -> None:
        self._given: dict[str, Any] = {"folder": folder, "server": server, "registry": registry}
        self._num = 0

    def compare(self, attempt: Attempt) -> tuple[AnyCodeRun, Outcome | str]:
        """Write what a run leaves, and compare it; return the message if it is invalid."""
        self._num += 1
        run = AnyCodeRun(name=str(self._num), **self._given).write(attempt.metrics)
        for name, lines in (("", attempt.lines), ("_of_champion", attempt.of_champion)):
            if lines is not None:
                text = "".join(f"{json.dumps(line) if line else ''}\n" for line in lines)
                (run.base / "checkpoints" / f"predictions{name}.jsonl").write_text(text)
        try:
            return run, run.compare(**attempt.parameters)
        except UserError as error:
            return run, str(error)


@pytest.fixture
def runs(tmp_path: Path, server: Server, registry: Registry) -> Runs:
    return Runs(tmp_path, server, registry)


def found(outcome: Outcome | str) -> str:
    if isinstance(outcome, str):
        return INVALID
    if outcome.is_promoted:
        return PROMOTED
    return UNDECIDED if outcome.next else REFUSED


@pytest.mark.parametrize("name", CHAMPIONS)
def test_no_wrong_model_becomes_the_champion_and_every_right_one_does(runs: Runs, name: str) -> None:
    champion, attempts = CHAMPIONS[name]
    if champion:
        run, outcome = runs.compare(champion)
        assert not isinstance(outcome, str), outcome
        run.register(outcome)
    results = {each: found(runs.compare(attempt)[1]) for each, attempt in attempts.items()}
    assert results == {each: attempt.expected for each, attempt in attempts.items()}


def test_twelve_weekly_runs_with_disjoint_test_sets_and_better_models_are_all_promoted(
    runs: Runs, registry: Registry
) -> None:
    def week(number: int, num_wrong: int) -> Lines:
        return classes(num_wrong, last=200, offset=1000 * number)

    for number in range(12):
        lines, before = week(number, 70 - 5 * number), week(number, 75 - 5 * number)
        attempt = Attempt(
            expected=PROMOTED, metrics=right(70 - 5 * number, 200), lines=lines, of_champion=before if number else None
        )
        run, outcome = runs.compare(attempt)
        assert found(outcome) == PROMOTED, run.reason
        assert not isinstance(outcome, str)
        version = run.register(outcome)
        champion = registry.champion(registry.find(NAME))
        assert champion is not None
        assert champion.name == version
