"""Reads what training code wrote about its model: `result.json` and, optionally, predictions that are evidence.

A copy is in the folder `evaluation` of each registered model, so that the next model can be compared with it.
"""

import json
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from components.any_code.request import text
from exact_resume.checkpoints import seal
from exact_resume.checkpoints.result_file import RESULT_FILE
from exact_resume.files import storage
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import quote

PREDICTIONS_FILE = "predictions.jsonl"
_CHAMPION_FILE = "predictions_of_champion.jsonl"
_FOLDER = "evaluation"
_IS_TEST = dict.fromkeys(("test", "testing", "tests"), True)
_IS_TEST |= dict.fromkeys(("train", "training", "val", "valid", "validation", "dev", "development"), False)
_MAX_CONTRADICTED = 0.02
"""Largest share of the examples in common that may have another label, or another answer of the champion."""

Line = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The content of the files."""

    metrics: Mapping[str, Any]
    tests: Mapping[str, Line]
    """Lines about test examples by their ids, with label and prediction; empty without the file."""
    seen: frozenset[str]
    """Ids of examples of other splits; empty: not known."""
    of_champion: Mapping[str, Line] = field(default_factory=dict)
    """Lines with the champion's answers to the same examples, by their ids."""

    @property
    def figures(self) -> dict[str, float]:
        """The metrics that are finite numbers."""
        return {name: each for name, each in self.metrics.items() if type(each) in (int, float) and _is_finite(each)}

    def value(self, metric: str) -> float:
        """Return the value of a metric.

        Raises:
            UserError: It is missing, or not a finite number.
        """
        if metric not in self.figures:
            found = quote(self.metrics[metric]) if metric in self.metrics else f"not among {sorted(self.metrics)}"
            raise UserError(f"metric {quote(metric)} is {found} in {RESULT_FILE}; expected a finite number")
        return self.figures[metric]

    @property
    def unseen(self) -> dict[str, Line]:
        """The lines about test examples that the model has not seen."""
        return {name: line for name, line in self.tests.items() if name not in self.seen}


@dataclass(frozen=True, kw_only=True)
class Examples:
    """The independent test examples that no model has seen; missing answers count against the model that lacks them."""

    labels: list[str]
    own: list[Line | None]
    """Lines of the new model; None: it does not answer."""
    champion: list[Line | None] = field(default_factory=list)
    """Lines of the champion; None: the file of the new model lacks them, so that the champion counts as right."""
    problem: str = ""
    """Why these examples decide nothing; empty: they do."""
    notes: tuple[str, ...] = ()
    """Remarks on examples that were left out, or counted as wrong."""


def examples(
    own: Evidence, champion: Evidence | None = None, *, answer: str = "prediction", fewest: int = 0
) -> Examples:
    """Return the examples that are evidence: of the test split only, of one label, and seen by none of the models.

    If the new model answers at least half of the champion's test examples, these decide: what it leaves out, or has
    seen, counts as wrong. Otherwise its own test examples decide, with the champion's answers in a file beside them.

    Args:
        own: Predictions of the new model.
        champion: Predictions of the champion; None: the new model's examples alone.
        answer: Field with the answer; a line without it does not count.
        fewest: Fewest examples that decide.
    """
    answered = {name: line for name, line in own.unseen.items() if answer in line}
    if champion is None:
        return Examples(labels=[line["label"] for line in answered.values()], own=[*answered.values()])
    recorded = {name: line for name, line in champion.unseen.items() if answer in line}
    problem = ""
    if len(recorded) >= fewest and 2 * len(answered.keys() & recorded.keys()) >= len(recorded):
        reference = others = recorded
        notes = _counted("counted as wrong: no unseen prediction", recorded.keys() - answered.keys())
    else:
        reference = answered = {name: line for name, line in answered.items() if name not in champion.seen}
        others = {name: line for name, line in own.of_champion.items() if name in answered and answer in line}
        notes = _counted("counted as right for the champion: no prediction", answered.keys() - others.keys())
        both = others.keys() & recorded.keys()
        wrong = [name for name in both if not _is_close(others[name][answer], recorded[name][answer])]
        if not others:
            problem = (
                f"of the champion's {len(recorded):,} test examples (CHAMPION_TEST_IDS), fewer than half are answered,"
                f" or they are fewer than {fewest:,}, and there is no {_CHAMPION_FILE} (by CHAMPION_MODEL)"
            )
        elif len(wrong) > _MAX_CONTRADICTED * len(both):
            problem = f"{_CHAMPION_FILE} has other answers than the champion gave for {len(wrong):,} of {len(both):,}"
    relabelled = {
        name
        for name, line in reference.items()
        if any(each.get(name, line).get("label", line["label"]) != line["label"] for each in (answered, others))
    }
    names = sorted(reference.keys() - relabelled)
    if not problem and len(relabelled) > _MAX_CONTRADICTED * len(reference):
        share = f"more than {_MAX_CONTRADICTED:.0%}"
        problem = f"{len(relabelled):,} of {len(reference):,} examples have other labels, {share}"
    elif not problem and len(names) < fewest:
        problem = f"{len(names):,} unseen examples are fewer than min_compared_images {fewest:,}"
    return Examples(
        labels=[reference[name]["label"] for name in names],
        own=[answered.get(name) for name in names],
        champion=[others.get(name) for name in names],
        problem=problem,
        notes=(*notes, *_counted("left out: another label", relabelled)),
    )


def _counted(what: str, names: Any) -> tuple[str, ...]:
    return (f"{len(names):,} {what}",) if names else ()


def read(folder: str) -> Evidence:
    """Return the evidence in a folder.

    Raises:
        UserError: `result.json` is missing or damaged, or a line of the predictions is wrong.
    """
    path = storage.join(folder, RESULT_FILE)
    result = storage.read_json(path)
    is_intact = isinstance(result, dict) and (seal.FIELD not in result or seal.is_intact(result))
    if not is_intact or not isinstance(result.get("metrics"), dict):
        raise UserError(f'{path} is missing or damaged; training code writes it last: {{"metrics": {{"loss": 0.5}}}}')
    seen: set[str] = set()
    tests = dict(_lines(storage.join(folder, PREDICTIONS_FILE), seen, ("label", "prediction")))
    of_champion = dict(_lines(storage.join(folder, _CHAMPION_FILE), set(), ("prediction",)))
    return Evidence(metrics=result["metrics"], tests=tests, seen=frozenset(seen), of_champion=of_champion)


def _lines(path: str, seen: set[str], fields: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the lines about test examples by their ids, and collect the ids of other splits.

    Raises:
        UserError: A line is wrong, or an id is there twice.
    """
    names: set[str] = set()
    for number, data in enumerate(storage.read_bytes(path).splitlines() if storage.exists(path) else (), 1):
        if not data.strip():
            continue
        try:
            line = json.loads(data)
            name, split = id_of(line["id"]), line.get("split", "test")
            is_test = _IS_TEST.get(str(split).strip().casefold())
            texts = {each: text(each, line[each]) for each in {"label", *fields} & line.keys() if is_test}
            if is_test and not texts.keys() >= set(fields):
                raise KeyError
        except (ValueError, TypeError, KeyError, AttributeError, UserError):
            expected = f"expected id, {' and '.join(fields)}, texts or numbers"
            raise UserError(f"{path} line {number}: {expected}") from None
        if is_test is None:
            raise UserError(f"{path} line {number}: the split is {quote(split)}; expected test, train or validation")
        if not is_test:
            seen.add(name)
            continue
        if name in names:
            raise UserError(f"{path} line {number}: the id {quote(name)} is there twice")
        names.add(name)
        yield name, {"answer": line["prediction"]} | line | texts


def id_of(value: Any) -> str:
    """Return the normal form of an id: text in Unicode's form NFC, without spaces around it and leading zeros.

    Raises:
        UserError: It is neither a text nor a number.
    """
    return re.sub(r"^0+(?=[0-9]+$)", "", unicodedata.normalize("NFC", text("id", value)).strip())


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        # An integer of more than 308 digits.
        return False


def _is_close(one: Any, other: Any) -> bool:
    try:
        return one == other or math.isclose(float(one), float(other), rel_tol=1e-3, abs_tol=1e-6)
    except (TypeError, ValueError):
        return False


def read_of_model(model_directory: str) -> Evidence:
    """Return the evidence that a registered model was given; see `read`."""
    return read(storage.join(model_directory, _FOLDER))


def give_to_model(folder: str, model_directory: str) -> None:
    """Copy the evidence into the folder of the model, in place of its parent model's evidence."""
    for name in (RESULT_FILE, PREDICTIONS_FILE):
        source, target = storage.join(folder, name), storage.join(model_directory, _FOLDER, name)
        if storage.exists(source):
            storage.write_bytes(target, storage.read_bytes(source))
        elif storage.exists(target):
            storage.remove(target)
