"""How a proof is shown: lines of at most 80 columns, JSON, and a page with the curves on top of each other."""

import math
import textwrap
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np

from localvertex._base.json_object import JsonObject
from localvertex.prove.comparison import BAD, Judgement
from localvertex.prove.numbers import Key
from localvertex.prove.prove import Proof, Result
from localvertex.show.report import document

WIDTH, _INDENT = 79, " " * 22
_MAX_DIFFERENCES, _MAX_CURVES, _MAX_POINTS = 3, 12, 2000


def lines(result: Result) -> list[str]:
    """Return the lines of one fault, the verdict in the first one."""
    comparison, is_bad = result.comparison, result.verdict in BAD
    counted = {
        "steps run again": comparison.steps_lost,
        "steps never logged": comparison.steps_missing,
        "examples repeated": comparison.examples_repeated,
        "examples never seen": comparison.examples_never_seen,
        "seconds lost": result.seconds_lost,
        "processes left": result.processes_left,
    }
    texts = [
        f"{result.fault:<22}{result.verdict}",
        ", ".join(f"{text}: {number}" for text, number in counted.items() if number),
        f"cause: {' or '.join(result.causes)}" if result.causes else "",
        result.reason,
        f"damaged: {result.damaged}" if is_bad and result.damaged else "",
        *(map(str, comparison.differences[:_MAX_DIFFERENCES]) if is_bad else ()),
        *(f"not compared: {each}" for each in comparison.not_compared[:_MAX_DIFFERENCES]),
    ]
    return [
        line
        for at, text in enumerate(texts)
        for line in textwrap.wrap(text, WIDTH, initial_indent=_INDENT if at else "", subsequent_indent=_INDENT + "  ")
    ]


def summary(proof: Proof) -> str:
    """Return the last lines of a proof."""
    noise = "differ, which is the noise" if proof.is_noisy else "are equal"
    verdicts = [each.verdict for each in proof.results]
    unjudged = verdicts.count(Judgement.CANNOT_BE_JUDGED)
    good = len(verdicts) - unjudged - sum(each in BAD for each in verdicts)
    return (
        f"{proof.num_undisturbed} undisturbed runs {noise}\n"
        f"{proof.name}: {good} of {len(verdicts)} faults equal; {unjudged} cannot be judged"
    )


def as_json(proof: Proof) -> JsonObject:
    """Return plain values."""
    faults = []
    for each in proof.results:
        fields = vars(each) | vars(each.comparison) | {"differences": list(map(str, each.comparison.differences))}
        faults.append({name: value for name, value in fields.items() if name not in ("comparison", "curves", "root")})
    names = ("name", "seed", "num_undisturbed", "is_noisy", "exit_code")
    return {name: getattr(proof, name) for name in names} | {"faults": faults}


def page(proofs: Sequence[Proof]) -> bytes:
    """Return the page, which needs no other file."""
    data = [as_json(each) | {"series": _series(each)} for each in proofs]
    title = f"prove: {', '.join(each.name for each in proofs)}"
    return document("comparing/proof.js", title=title, file="the file of --json", data=data)


def _series(proof: Proof) -> list[JsonObject]:
    """Return the curves of an undisturbed run and of each fault, by step, as the console draws them."""
    compared = [each.comparison.curves for each in proof.results]
    every = {curve.name: curve for run in compared for curve in run if curve.is_of_training}
    curves = [each for each in every.values() if len(each.expected) > 2 and np.size(each.first) == 1]
    curves = sorted(curves, key=lambda each: "loss" not in each.title.lower())[:_MAX_CURVES]
    keys = sorted({key for each in curves for key in each.expected})
    drawn = keys[:: math.ceil(len(keys) / _MAX_POINTS) or 1]

    def at(key: Key) -> float:
        return key[0] if len(key) == 1 else float(bisect_left(keys, key))

    undisturbed = {(each.name, key): values[0] for each in curves for key, values in each.expected.items()}
    # Where it resumed, and where it differs first.
    marks = [
        [
            [key for curve in each.comparison.curves if curve.name == curves[0].name for key in curve.resumed_at[:1]],
            [other.key for other in each.comparison.differences if other.key and not other.curve.is_of_file],
        ]
        for each in proof.results
        if curves
    ]
    found = [{(curve.name, key): point.value for curve in run for key, point in curve.found} for run in compared]
    return [
        {
            "names": [each.title for each in curves],
            "points": [[at(key), None, *(_number(run.get((each.name, key))) for each in curves)] for key in drawn],
            "evaluated": [],
            "resumes": [],
            "marks": [min(map(at, each), default=None) for each in marked],
        }
        for run, marked in zip((undisturbed, *found), ([], *(marks or [[]] * len(found))), strict=True)
    ]


def _number(value: Any) -> float | None:
    number = math.nan if value is None or isinstance(value, str) else float(np.ravel(value)[0])
    return number if math.isfinite(number) else None
