"""How a proof is shown: lines of at most 80 columns, JSON, and a page with the curves on top of each other."""

import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from localvertex.commands.prove.comparison import BAD, Judgement
from localvertex.commands.prove.prove import Proof, Result
from localvertex.show.report import document

WIDTH, _INDENT = 79, " " * 22
_MAX_DIFFERENCES, _MAX_CURVES, _MAX_POINTS = 3, 12, 2000


def lines(result: Result) -> list[str]:
    """Return the lines of one fault, the verdict in the first one."""
    return [
        line
        for at, text in enumerate((f"{result.fault:<22}{result.verdict}", *_facts(result)))
        for line in textwrap.wrap(text, WIDTH, initial_indent=_INDENT if at else "", subsequent_indent=_INDENT + "  ")
    ]


def _facts(result: Result) -> Iterator[str]:
    comparison = result.comparison
    counted = {
        "steps run again": comparison.steps_lost,
        "steps never logged": comparison.steps_missing,
        "examples repeated": comparison.examples_repeated,
        "examples never seen": comparison.examples_never_seen,
        "seconds lost": result.seconds_lost,
        "processes left": result.processes_left,
    }
    yield from filter(None, [", ".join(f"{text}: {number}" for text, number in counted.items() if number)])
    yield from [f"cause: {' or '.join(result.causes)}"] if result.causes else []
    yield from [result.reason] if result.reason else []
    if result.verdict in BAD:
        yield from [f"damaged: {result.damaged}"] if result.damaged else []
        yield from map(str, comparison.differences[:_MAX_DIFFERENCES])
    yield from [f"not compared: {each}" for each in comparison.not_compared[:_MAX_DIFFERENCES]]


def summary(proof: Proof) -> str:
    """Return the last lines of a proof."""
    noise = "differ, which is the noise" if proof.is_noisy else "are equal"
    verdicts = [each.verdict for each in proof.results]
    unjudged = verdicts.count(Judgement.CANNOT_BE_JUDGED)
    good = len(verdicts) - unjudged - sum(each in BAD for each in verdicts)
    return (
        f"{proof.num_undisturbed} undisturbed runs {noise}\n"
        f"{proof.name}: {good} of {len(verdicts)} faults equal, {unjudged} cannot be judged"
    )


def as_json(proof: Proof) -> dict[str, Any]:
    """Return plain values."""
    faults = []
    for each in proof.results:
        fields = {**vars(each), **vars(each.comparison), "differences": list(map(str, each.comparison.differences))}
        faults.append({name: value for name, value in fields.items() if name not in ("comparison", "curves")})
    return {
        "name": proof.name,
        "seed": proof.seed,
        "num_undisturbed": proof.num_undisturbed,
        "is_noisy": proof.is_noisy,
        "exit_code": proof.exit_code,
        "faults": faults,
    }


def page(proofs: Sequence[Proof]) -> bytes:
    """Return the page, which needs no other file."""
    data = [as_json(each) | {"series": _series(each)} for each in proofs]
    title = f"prove: {', '.join(each.name for each in proofs)}"
    return document("comparing/proof.js", title=title, file="the file of --json", data=data)


def _series(proof: Proof) -> list[dict[str, Any]]:
    """Return the curves of an undisturbed run and of each fault, by step, as the console draws them."""
    runs = [{curve.name: curve for curve in each.comparison.curves} for each in proof.results]
    every = {name: curve for run in runs for name, curve in run.items() if curve.is_of_training}
    curves = [each for each in every.values() if len(each.expected) > 2 and np.size(each.first) == 1]
    curves = sorted(curves, key=lambda each: "loss" not in each.title.lower())[:_MAX_CURVES]
    keys = sorted({key for each in curves for key in each.expected})
    keys = keys[:: math.ceil(len(keys) / _MAX_POINTS) or 1]
    undisturbed = {each.name: {key: values[0] for key, values in each.expected.items()} for each in curves}
    found = [{name: {key: at.value for key, at in curve.found} for name, curve in run.items()} for run in runs]
    return [
        {
            "names": [each.title for each in curves],
            "points": [
                [
                    key[0] if len(key) == 1 else number,
                    None,
                    *(_number(run.get(each.name, {}).get(key)) for each in curves),
                ]
                for number, key in enumerate(keys)
            ],
            "evaluated": [],
            "resumes": [],
        }
        for run in (undisturbed, *found)
    ]


def _number(value: Any) -> float | None:
    number = math.nan if value is None or isinstance(value, str) else float(np.ravel(value)[0])
    return number if math.isfinite(number) else None
