"""A study: the metrics to optimise, the parameters to tune, and how trials are chosen.

Fields and rules follow StudySpec (types/study.py of google-cloud-aiplatform 1.165.1).
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from localvertex._base.userinput.errors import UserError
from localvertex.jobs.tuning.message import Message
from localvertex.jobs.tuning.parameters import Parameter, ValueKind, read_parameter


class Algorithm(IntEnum):
    """How trials are chosen."""

    ALGORITHM_UNSPECIFIED = 0
    """On Vertex AI: Bayesian optimisation."""
    GRID_SEARCH = 2
    RANDOM_SEARCH = 3


class Selection(IntEnum):
    """Which reported measurement is the final one."""

    MEASUREMENT_SELECTION_TYPE_UNSPECIFIED = 0
    """The same as LAST_MEASUREMENT."""
    LAST_MEASUREMENT = 1
    BEST_MEASUREMENT = 2


class Goal(IntEnum):
    """Whether a metric should be large or small."""

    GOAL_TYPE_UNSPECIFIED = 0
    """The same as MAXIMIZE."""
    MAXIMIZE = 1
    MINIMIZE = 2


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric to optimise."""

    name: str
    goal: Goal = Goal.MAXIMIZE

    def is_better(self, value: float, other: float) -> bool:
        """Return whether a value is better than another one."""
        return value < other if self.goal is Goal.MINIMIZE else value > other


@dataclass(frozen=True, kw_only=True)
class Study:
    """A StudySpec that has been checked."""

    metrics: tuple[Metric, ...]
    parameters: tuple[Parameter, ...]
    algorithm: Algorithm = Algorithm.ALGORITHM_UNSPECIFIED
    selection: Selection = Selection.MEASUREMENT_SELECTION_TYPE_UNSPECIFIED


def read_study(value: Any) -> Study:
    """Read a StudySpec.

    Raises:
        UserError: It breaks a rule of the API, or uses what cannot run here; the error names the field.
    """
    message = Message(value, "study_spec", ("metrics", "parameters", "algorithm", "measurement_selection_type"))
    metrics = [_read_metric(each, f"study_spec.metrics[{i}]") for i, each in enumerate(message.items("metrics"))]
    listed = enumerate(message.items("parameters"))
    parameters = [read_parameter(each, f"study_spec.parameters[{index}]") for index, each in listed]
    for name, group in (("metrics", metrics), ("parameters", parameters)):
        names = [each.name for each in group]
        if not names:
            raise UserError("the list is empty", path=message.name_of(name))
        if repeated := next((each for each in names if names.count(each) > 1), ""):
            raise UserError(f"{repeated!r} is repeated", path=message.name_of(name))
    algorithm = message.enumeration("algorithm", Algorithm)
    double = next((each for each in parameters if each.kind is ValueKind.DOUBLE), None)
    if algorithm is Algorithm.GRID_SEARCH and double:
        raise UserError(
            f"GRID_SEARCH takes no double_value_spec ({double.name}); give discrete values, or use RANDOM_SEARCH",
            path=double.path,
        )
    return Study(
        metrics=tuple(metrics),
        parameters=tuple(parameters),
        algorithm=algorithm,
        selection=message.enumeration("measurement_selection_type", Selection),
    )


def _read_metric(value: Any, path: str) -> Metric:
    message = Message(value, path, ("metric_id", "goal", "safety_config"))
    if message.has("safety_config"):
        raise UserError("safe search does not run locally; remove it", path=message.name_of("safety_config"))
    return Metric(name=message.identifier("metric_id"), goal=message.enumeration("goal", Goal))
