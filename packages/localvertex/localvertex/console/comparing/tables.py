"""Equal and different parts of the records of runs: parameters, metrics, and states of steps."""

import json
import math
import re
from typing import Any

_RUN_FIELDS = ("id", "pipeline_name", "state", "create_time", "seconds", "error", "spec")

_MAX_STEPS = 500

_LARGER = {"accuracy", "precision", "recall", "f1", "auc", "auroc", "auprc", "map", "iou", "dice", "goodput"}
_SMALLER = {"loss", "error", "mae", "mse", "rmse", "perplexity", "latency"}
"""Words in the names of metrics for which larger or smaller is better; for all others no value is marked as best."""


def compare(contents: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the tables.

    Args:
        contents: The records; differences are to the first one.
    """
    return {
        "runs": [{name: content.get(name) for name in _RUN_FIELDS} for content in contents],
        "parameters": _parameters(contents),
        "metrics": _metrics(contents),
        **_steps(contents),
    }


def _parameters(contents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each parameter with its values; `is_set` is false where a run has no such parameter."""
    names = dict.fromkeys(name for each in contents for name in each.get("parameters", {}))
    rows = []
    for name in names:
        cells = [each.get("parameters", {}) for each in contents]
        texts = {json.dumps(cell[name], sort_keys=True, default=str) if name in cell else None for cell in cells}
        values = [{"is_set": name in cell, "value": cell.get(name)} for cell in cells]
        rows.append({"name": name, "values": values, "differs": len(texts) > 1})
    return rows


def _metrics(contents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each metric with its values, the differences to the first run, and the runs that have the best value."""
    keys = dict.fromkeys(_key(each) for content in contents for each in content["metrics"])
    titles = {task["path"]: task["title"] for content in contents for task in content["tasks"]}
    rows = []
    for task, artifact, name in keys:
        found = [{_key(each): each["value"] for each in content["metrics"]} for content in contents]
        values = [each.get((task, artifact, name)) for each in found]
        # JSON has no NaN and no infinity.
        numbers = [each if _is_number(each) else None for each in values]
        row = {"task": task, "artifact": artifact, "name": name, "title": titles.get(task, task)}
        row |= {"values": [_show(each) for each in values]}
        first = numbers[0]
        differences = [None if first is None or each is None else each - first for each in numbers]
        rows.append(row | {"differences": [None, *differences[1:]], "best": _best(name, numbers)})
    return rows


def _key(metric: dict[str, Any]) -> tuple[str, str, str]:
    return metric["task"], metric["artifact"], metric["name"]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _show(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def direction(name: str) -> int:
    """Return 1 if a larger value of a metric is better, -1 if a smaller one is, 0 if its name does not show it."""
    words = set(re.findall(r"[a-z0-9]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower().replace("_", " ")))
    return 0 if "baseline" in words else bool(words & _LARGER) - bool(words & _SMALLER)


def _best(name: str, numbers: list[float | None]) -> list[int]:
    """Return the positions of the best values; none when the direction is not known or all are the same."""
    known = {each * direction(name) for each in numbers if each is not None}
    if direction(name) == 0 or len(known) < 2:
        return []
    return [index for index, each in enumerate(numbers) if each is not None and each * direction(name) == max(known)]


def _steps(contents: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the state and duration of each step in each run; None where a run does not have it."""
    entries = [{each["path"]: each for each in content["tasks"] if each["kind"] == "step"} for content in contents]
    titles = {path: each["title"] for found in reversed(entries) for path, each in found.items()}
    paths = [*dict.fromkeys(path for found in entries for path in found)]
    fields = ("state", "seconds", "attempts")
    rows = [
        {
            "path": path,
            "title": titles[path],
            "cells": [{name: found[path].get(name) for name in fields} if path in found else None for found in entries],
        }
        for path in paths[:_MAX_STEPS]
    ]
    return {"steps": rows, "num_more_steps": len(paths) - len(rows)}
