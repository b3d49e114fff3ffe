"""Results of a run, in words for the terminal and the page: its main metric, or that nothing was new."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localvertex.store import runs

_NOTHING_NEW, _IDENTITY = "has_nothing_new", "run_id"
"""Outputs of a step that finds out that the same run already ran, and the identity by which it does."""

_PREFERRED = "accuracy"


@dataclass(frozen=True, kw_only=True)
class NothingNew:
    """A run that computed nothing, because an earlier one had the same identity."""

    sentence: str
    earlier: str
    """The id of that run; empty when it is no longer in the work folder."""


def nothing_new(content: dict[str, Any]) -> NothingNew | None:
    """Return what the run repeats; None when it computed something."""
    step = next((task for task in content["tasks"] if has_nothing_new(task)), None)
    if step is None:
        return None
    identity, work_dir = str(step["outputs"]["parameters"].get(_IDENTITY, "")), Path(content["work_dir"])
    same = [
        each.content
        for each in runs.find_all(work_dir)
        if not each.problem
        and each.content["pipeline_name"] == content["pipeline_name"]
        and each.content["create_time"] < content["create_time"]
        and any(_has_results(task, step["path"], identity) for task in each.content["tasks"])
    ]
    # The newest one with a result, because a failed one has fewer metrics.
    best = max(same, key=lambda each: (bool(each["models"]), len(each["metrics"]), each["create_time"]), default=None)
    if best:
        return NothingNew(sentence=f"nothing new: same as run {best['run_id']}", earlier=best["run_id"])
    sentence = f"nothing new: run {identity} is already finished; {work_dir} has no record of it"
    return NothingNew(sentence=sentence, earlier="")


def has_nothing_new(task: dict[str, Any]) -> bool:
    """Return whether a task of a record found that the same run already ran."""
    return task["outputs"]["parameters"].get(_NOTHING_NEW) is True


def _has_results(task: dict[str, Any], path: str, identity: str) -> bool:
    values = task["outputs"]["parameters"]
    return task["path"] == path and values.get(_IDENTITY) == identity and values.get(_NOTHING_NEW) is False


def main_metric(content: dict[str, Any]) -> str:
    """Return the accuracy of a run, otherwise its first metric, e.g. `accuracy 0.99`; empty when it has none.

    The baseline follows it, if the run has one: `accuracy 0.99 (baseline 0.9)`.
    """
    numbers = [each for each in content["metrics"] if isinstance(each.get("value"), int | float)]
    chosen = next((each for each in numbers if _PREFERRED in each["name"].lower()), next(iter(numbers), None))
    if not chosen:
        return ""
    baseline = next((each["value"] for each in numbers if each["name"] == f"baseline_{chosen['name']}"), None)
    beside = f" (baseline {figure(baseline)})" if baseline is not None else ""
    return f"{chosen['name']} {figure(chosen['value'])}{beside}"


def figure(value: Any) -> str:
    """Return a value as people read it: a float with five digits, as the console shows it."""
    return f"{value:.5g}" if isinstance(value, float) else str(value)
