"""The metrics of a version: of its newest evaluation as figures, and all of its evaluations."""

from pathlib import Path
from typing import Any

from localvertex.console.runs.outputs import Content
from localvertex.store.models import evaluations

_CONFIDENCE = "confidenceMetrics"
"""In Google's schema of classification metrics: figures for each threshold."""

_SETTINGS = ("confidenceThreshold", "maxPredictions")

_MAX_EVALUATIONS = 50


def all_evaluations(version: Path) -> list[Content]:
    """Return the evaluations of the version in a folder, the newest first; a damaged one has a reason."""
    found = [_evaluation(version, each) for each in evaluations.ids(version)]
    return sorted(found, key=lambda each: each["create_time"], reverse=True)[:_MAX_EVALUATIONS]


def figures(every: list[Content]) -> Content:
    """Return the figures of the newest evaluation that has some."""
    return next((each["figures"] for each in every if each["figures"]), {})


def _evaluation(version: Path, evaluation_id: str) -> Content:
    try:
        content = evaluations.content(version, evaluation_id)
    except (OSError, ValueError) as error:
        return {"id": evaluation_id, "name": "", "create_time": "", "schema": "", "figures": {}, "problem": str(error)}
    metrics = content.get("metrics")
    return {
        "id": evaluation_id,
        "name": str(content.get("display_name", "")),
        "create_time": str(content.get("create_time", "")),
        "schema": str(content.get("metrics_schema_uri", "")),
        "figures": _figures(metrics) if isinstance(metrics, dict) else {},
        "metrics": metrics,
        "problem": "",
    }


def _figures(metrics: Content) -> Content:
    """Return the numbers in metrics of any schema, including a single threshold's."""
    found = {name: value for name, value in metrics.items() if _is_number(value)}
    rows = metrics.get(_CONFIDENCE)
    if isinstance(rows, list) and len(rows) == 1 and isinstance(rows[0], dict):
        only = {name: value for name, value in rows[0].items() if _is_number(value) and name not in _SETTINGS}
        found = only | found
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
