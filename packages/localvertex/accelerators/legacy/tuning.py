"""The hyperparameters block of a legacy job as the study of a HyperparameterTuningJob."""

import re
from typing import Any

from accelerators.legacy.report import Report
from localvertex_base.userinput.spelling import closest, join_or, quote

_DEFAULT_METRIC = "training/hptuning/metric"
"""The metric tag of jobs without one (ml v1 API reference)."""

_ALGORITHMS = ("GRID_SEARCH", "RANDOM_SEARCH")
_SCALES = ("UNIT_LINEAR_SCALE", "UNIT_LOG_SCALE", "UNIT_REVERSE_LOG_SCALE")
_KINDS = ("DOUBLE", "INTEGER", "CATEGORICAL", "DISCRETE")


def tuning_job(old: dict[str, Any], report: Report) -> dict[str, Any]:
    """Return study_spec and trial counts of a HyperparameterTuningJob."""
    study: dict[str, Any] = {
        "metrics": [_metric(old, report)],
        "parameters": [
            _parameter(parameter, f"hyperparameters.params[{index}]", report)
            for index, parameter in enumerate(old.get("params") or ())
        ],
    }
    if not study["parameters"]:
        report.add("decide", "hyperparameters.params", "missing; a study needs at least one parameter")
    algorithm = _name(old.get("algorithm"))
    if algorithm in _ALGORITHMS:
        study["algorithm"] = algorithm
    elif algorithm and algorithm != "ALGORITHM_UNSPECIFIED":
        message = f"{algorithm} does not exist on Vertex AI; left out, so Bayesian optimisation is used: choose"
        report.add("decide", "hyperparameters.algorithm", message)
    _without_counterpart(old, report)
    made: dict[str, Any] = {
        "study_spec": study,
        "max_trial_count": old.get("maxTrials") or 1,
        "parallel_trial_count": old.get("maxParallelTrials") or 1,
    }
    if old.get("maxFailedTrials"):
        made["max_failed_trial_count"] = old["maxFailedTrials"]
    return made


def _name(value: object) -> str:
    return str(value or "").upper().replace("-", "_")


def _metric(old: dict[str, Any], report: Report) -> dict[str, str]:
    goal = _name(old.get("goal")) or "MAXIMIZE"
    if goal not in ("MAXIMIZE", "MINIMIZE"):
        hint = closest(goal, ("MAXIMIZE", "MINIMIZE")) or ("MAXIMIZE",)
        report.add("decide", "hyperparameters.goal", f"{goal} is not a goal; treated as {hint[0]}")
        goal = hint[0]
    tag = old.get("hyperparameterMetricTag") or _DEFAULT_METRIC
    _check_id(str(tag), "hyperparameters.hyperparameterMetricTag", report)
    message = f"{tag} is the metric_id now; the program has to report it with the cloudml-hypertune package"
    report.add("doubtful", "hyperparameters.hyperparameterMetricTag", message)
    return {"metric_id": str(tag), "goal": goal}


def _check_id(name: str, path: str, report: Report) -> None:
    """Add a decision where the service would refuse an id: it may contain no whitespace."""
    if re.search(r"\s", name):
        message = f"{quote(name)} contains whitespace, which Vertex AI refuses; rename it here and in the program"
        report.add("decide", path, message)


def _without_counterpart(old: dict[str, Any], report: Report) -> None:
    if old.get("enableTrialEarlyStopping"):
        message = "Vertex AI needs a type of stopping, e.g. study_spec.median_automated_stopping_spec; left out"
        report.add("dropped", "hyperparameters.enableTrialEarlyStopping", message)
    if old.get("resumePreviousJobId"):
        message = "AI Platform Training studies cannot be resumed; the new study starts from scratch"
        report.add("dropped", "hyperparameters.resumePreviousJobId", message)


def _parameter(old: dict[str, Any], path: str, report: Report) -> dict[str, Any]:
    kind = _name(old.get("type"))
    if not old.get("parameterName"):
        report.add("decide", f"{path}.parameterName", "missing; replace PARAMETER_NAME with its name")
    made: dict[str, Any] = {"parameter_id": str(old.get("parameterName") or "PARAMETER_NAME")}
    _check_id(made["parameter_id"], f"{path}.parameterName", report)
    if kind not in _KINDS:
        report.add("decide", f"{path}.type", f"{kind or 'missing'}; expected {join_or(_KINDS)}: the range is left out")
        return made
    made |= _range(old, kind, path, report)
    scale = _name(old.get("scaleType"))
    if scale in _SCALES:
        made["scale_type"] = scale
    elif scale not in ("", "NONE"):
        report.add("decide", f"{path}.scaleType", f"{scale}; expected NONE, {join_or(_SCALES)}: left out")
    return made


def _range(old: dict[str, Any], kind: str, path: str, report: Report) -> dict[str, Any]:
    if kind in ("CATEGORICAL", "DISCRETE"):
        values = old.get(f"{kind.lower()}Values") or []
        if not values:
            report.add("decide", path, f"{kind} without {kind.lower()}Values; list them")
        return {f"{kind.lower()}_value_spec": {"values": values}}
    low, high = old.get("minValue"), old.get("maxValue")
    if low is None or high is None or low > high:
        report.add("decide", path, f"{kind} from {low} to {high}; expected minValue and a maxValue of at least that")
        low, high = low or 0, high or 0
    if kind == "INTEGER":
        if low != int(low) or high != int(high):
            report.add("decide", path, f"INTEGER from {low} to {high}; truncated to whole numbers")
        low, high = int(low), int(high)
    return {f"{kind.lower()}_value_spec": {"min_value": low, "max_value": high}}
