"""How a proof is shown: lines of at most 80 columns, JSON, and a page with the curves on top of each other."""

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from localvertex.commands.prove.comparison import Verdict, counts, is_of_training, keyed, label
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
        "steps again": comparison.steps_lost,
        "steps never logged": comparison.steps_missing,
        "examples repeated": comparison.examples_repeated,
        "examples never seen": comparison.examples_never_seen,
        "s lost": result.seconds_lost,
        "processes left and killed": result.processes_left,
    }
    yield from filter(None, [", ".join(f"{number} {text}" for text, number in counted.items() if number)])
    yield from [f"cause: {' or '.join(result.causes)}"] if result.causes else []
    yield from [result.reason] if result.reason else []
    if result.verdict in (Verdict.DIFFERENT, Verdict.DID_NOT_FINISH):
        yield from [f"damaged: {result.damaged}"] if result.damaged else []
        yield from map(str, comparison.differences[:_MAX_DIFFERENCES])
    yield from [f"not compared: {each}" for each in comparison.not_compared[:_MAX_DIFFERENCES]]


def summary(proof: Proof) -> str:
    """Return the last lines of a proof."""
    noise = "are equal" if proof.is_deterministic else "differ, which is the noise"
    verdicts = [each.verdict for each in proof.results]
    good = verdicts.count(Verdict.EQUAL) + verdicts.count(Verdict.WITHIN_NOISE)
    unjudged = verdicts.count(Verdict.CANNOT_BE_JUDGED)
    return (
        f"{len(proof.references)} undisturbed runs {noise}\n"
        f"{proof.name}: {good} of {len(verdicts)} faults equal; {unjudged} cannot be judged"
    )


def as_json(proof: Proof) -> dict[str, Any]:
    """Return plain values."""
    faults = []
    for each in proof.results:
        fields = {name: value for name, value in vars(each).items() if name not in ("observation", "comparison")}
        faults.append(fields | asdict(each.comparison) | {"differences": list(map(str, each.comparison.differences))})
    return {
        "name": proof.name,
        "seed": proof.seed,
        "num_undisturbed": len(proof.references),
        "is_deterministic": proof.is_deterministic,
        "exit_code": proof.exit_code,
        "faults": faults,
    }


def page(proofs: Sequence[Proof]) -> bytes:
    """Return the page, which needs no other file."""
    data = [as_json(each) | {"curves": list(_curves(each))} for each in proofs]
    title = f"prove: {', '.join(each.name for each in proofs)}"
    return document("jobs/proof.js", title=title, file="the file of --json", data=data)


def _curves(proof: Proof) -> Iterator[dict[str, Any]]:
    """Yield the steps of each curve, and its values in the undisturbed run and under each fault."""
    first = proof.references[0]
    names = [
        each for each in first if is_of_training(each) and len(first[each]) > 2 and np.size(first[each][0].value) == 1
    ]
    for name in sorted(names, key=lambda each: "loss" not in label(each).lower())[:_MAX_CURVES]:
        number, has_counters = len(first[name]), counts(first[name])
        runs = [
            dict(keyed(each.get(name, []), has_counters, number))
            for each in (first, *(x.observation for x in proof.results))
        ]
        keys = [*runs[0]][:: math.ceil(number / _MAX_POINTS)]
        values = [[_number(each[key].value) if key in each else None for key in keys] for each in runs]
        steps = ["/".join(f"{each:g}" for each in key) for key in keys]
        yield {"title": label(name), "steps": steps, "undisturbed": values[0], "runs": values[1:]}


def _number(value: Any) -> float | None:
    number = math.nan if isinstance(value, str) else float(np.ravel(value)[0])
    return number if math.isfinite(number) else None
