"""A study: the metrics to optimise, the parameters to tune, and how trials are chosen.

Fields and rules follow StudySpec (types/study.py of google-cloud-aiplatform 1.165.1).
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from localvertex._base.compiled.parameters import restore_integers
from localvertex._base.compiled.payload import without_empty
from localvertex._base.json_object import JsonObject
from localvertex._base.nested import parts
from localvertex._base.userinput.errors import UserError
from localvertex.machines.job.shape import Reading
from localvertex.machines.job.values import RuntimeValue
from localvertex.machines.studies.message import Message, NotLocal, Unadvised, wrong_number
from localvertex.machines.studies.parameters import Parameter, ValueKind, read_parameter

COUNTS = {"max_trial_count": 1, "parallel_trial_count": 1, "max_failed_trial_count": 0}
"""The counts of a job, and the minimum of each."""

_PARTS = {"metrics": "metric_id with its goal", "parameters": "parameter_id with its range or values"}


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
        """Return whether a value is better than another value."""
        return value < other if self.goal is Goal.MINIMIZE else value > other


@dataclass(frozen=True, kw_only=True)
class Study:
    """A StudySpec that has been checked."""

    metrics: tuple[Metric, ...]
    parameters: tuple[Parameter, ...]
    algorithm: Algorithm = Algorithm.ALGORITHM_UNSPECIFIED
    selection: Selection = Selection.MEASUREMENT_SELECTION_TYPE_UNSPECIFIED


def check_tuning_job(job: JsonObject, reading: Reading, *, runs_here: bool = False) -> None:
    """Add what `read_study` and `read_counts` refuse of a HyperparameterTuningJob, as far as its values are known.

    Args:
        job: The message with names in snake_case; the job of the trials is not read.
        reading: Gets the findings.
        runs_here: Whether the job is to run on this machine, where more is refused than by the service.
    """
    fields = restore_integers(without_empty(job))
    counts = {name: fields.get(name, 0) for name in COUNTS}
    for part, read in ((fields.get("study_spec", {}), read_study), (counts, read_counts)):
        if any(isinstance(each, RuntimeValue) for each in parts(part)):
            continue
        try:
            read(part)
        except UserError as error:
            if runs_here or not isinstance(error, NotLocal | Unadvised):
                reading.error("study", error.path, error.text)
            elif isinstance(error, Unadvised):
                reading.warning("study", error.path, f"{error.text} (StudySpec in the API reference)")


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
            raise UserError(f"expected at least one {_PARTS[name]}, found none", path=message.name_of(name))
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


def read_counts(message: JsonObject) -> list[int]:
    """Return the maximum number of trials, of parallel trials and of failures.

    Raises:
        UserError: A number is invalid.
    """
    counts = []
    for name, least in COUNTS.items():
        count = message.get(name, 0)
        if not isinstance(count, int) or isinstance(count, bool) or count < least:
            raise wrong_number(f"an integer of at least {least}", count, name)
        counts.append(count)
    return counts


def _read_metric(value: Any, path: str) -> Metric:
    message = Message(value, path, ("metric_id", "goal"))
    return Metric(name=message.identifier("metric_id"), goal=message.enumeration("goal", Goal))
