"""Results of a run, in words for the terminal and the page: its main metric."""

from typing import Any

from localvertex._base.json_object import JsonObject

_PREFERRED = "accuracy"


def main_metric(content: JsonObject, *, has_baseline: bool = True) -> str:
    """Return the accuracy of a run, otherwise its first metric, e.g. `accuracy 0.99`; empty when it has none.

    With `has_baseline`, the baseline follows it, if the run has one: `accuracy 0.99 (baseline 0.9)`.
    """
    numbers = [each for each in content["metrics"] if isinstance(each.get("value"), int | float)]
    chosen = next((each for each in numbers if _PREFERRED in each["name"].lower()), next(iter(numbers), None))
    if not chosen:
        return ""
    baseline = next((each["value"] for each in numbers if each["name"] == f"baseline_{chosen['name']}"), None)
    beside = f" (baseline {figure(baseline)})" if has_baseline and baseline is not None else ""
    return f"{chosen['name']} {figure(chosen['value'])}{beside}"


def figure(value: Any) -> str:
    """Return a value as people read it: a float with five digits, as the console shows it."""
    return f"{value:.5g}" if isinstance(value, float) else str(value)
