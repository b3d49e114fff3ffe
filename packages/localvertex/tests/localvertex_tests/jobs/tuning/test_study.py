"""A study is read as the API describes it; what breaks a rule is refused by the name of its field."""

import json
import math
import time
from itertools import islice
from typing import Any

import pytest

from localvertex._base.userinput.errors import UserError
from localvertex.jobs.tuning.measurements import Measurement
from localvertex.jobs.tuning.suggestions import Point, argument, suggestions
from localvertex.jobs.tuning.trial import Trial, as_client_json
from localvertex.machines.studies.study import Study, read_study

KIND = {"parameter_id": "kind", "categorical_value_spec": {"values": ["a", "b"]}}
SIZE = {"parameter_id": "size", "discrete_value_spec": {"values": [16, 32.0, 0.5]}}
UNITS = {"parameter_id": "units", "integer_value_spec": {"min_value": 1, "max_value": 3}}
RATE = {"parameter_id": "rate", "double_value_spec": {"min_value": 0.001, "max_value": 10.0}}


def study(*parameters: dict[str, Any], **fields: Any) -> Study:
    return read_study({"metrics": [{"metric_id": "loss", "goal": "MINIMIZE"}], "parameters": [*parameters], **fields})


def points(*parameters: dict[str, Any], algorithm: str = "GRID_SEARCH", number: int = 100) -> list[Point]:
    return list(islice(suggestions(study(*parameters, algorithm=algorithm)), number))


def test_a_grid_contains_every_point_once_in_order() -> None:
    assert points(KIND, UNITS) == [{"kind": kind, "units": units} for kind in "ab" for units in (1, 2, 3)]
    assert points(SIZE) == [{"size": 16}, {"size": 32.0}, {"size": 0.5}]


def test_a_grid_of_a_billion_points_is_not_built() -> None:
    wide = {"parameter_id": "wide", "integer_value_spec": {"max_value": 10**9}}
    assert points(wide, number=3) == [{"wide": 0}, {"wide": 1}, {"wide": 2}]


@pytest.mark.parametrize(
    ("scale", "low", "high"),
    [
        ("UNIT_LINEAR_SCALE", 4.0, 6.0),
        ("UNIT_LOG_SCALE", 0.05, 0.2),
        ("UNIT_REVERSE_LOG_SCALE", 9.8, 9.95),
        ("SCALE_TYPE_UNSPECIFIED", 4.0, 6.0),
    ],
)
def test_random_values_are_spread_over_the_scale(scale: str, low: float, high: float) -> None:
    drawn = points(RATE | {"scale_type": scale}, algorithm="RANDOM_SEARCH", number=2000)
    values = sorted(float(each["rate"]) for each in drawn)
    assert 0.001 <= values[0] <= values[-1] <= 10.0
    # The middle of the scale: for the logarithmic ones, 0.1 or 10.001 - 0.1.
    assert low < values[1000] < high


def test_random_integers_reach_both_ends_on_every_scale() -> None:
    for scale in ("UNIT_LINEAR_SCALE", "UNIT_LOG_SCALE", "UNIT_REVERSE_LOG_SCALE"):
        drawn = points(UNITS | {"scale_type": scale}, algorithm="RANDOM_SEARCH", number=300)
        assert {each["units"] for each in drawn} == {1, 2, 3}
        assert all(type(each["units"]) is int for each in drawn)


def test_whole_numbers_are_written_without_a_point() -> None:
    values = {16: "16", 32.0: "32", 0.5: "0.5", "a b": "a b", 1e-7: "1e-07", 1e300: "1e+300"}
    assert {value: argument(value) for value in values} == values


def test_a_trial_of_a_whole_second_is_written_as_the_client_library_does(monkeypatch: pytest.MonkeyPatch) -> None:
    from google.cloud.aiplatform_v1 import types

    monkeypatch.setattr(time, "time", lambda: 1795788506.0)
    trial = Trial(id="1", point={"units": 2.0}, custom_job="job")
    trial.start()
    trial.end(Measurement(step=1, values={"loss": 2.0}))
    text = as_client_json(trial.as_json())
    assert json.loads(types.Trial.to_json(types.Trial.from_json(text))) == json.loads(text)


def test_the_message_of_the_client_library_is_read() -> None:
    from google.cloud.aiplatform import hyperparameter_tuning as hpt
    from google_cloud_pipeline_components.v1 import hyperparameter_tuning_job

    specs = {
        "model": hpt.CategoricalParameterSpec(["tree", "net"]),
        "depth": hpt.IntegerParameterSpec(1, 2, "linear"),
        "rate": hpt.DoubleParameterSpec(min=0.1, max=1, scale="log"),
        "size": hpt.DiscreteParameterSpec([16, 32], scale="reverse_log"),
    }
    found = read_study(
        {
            "metrics": hyperparameter_tuning_job.serialize_metrics({"loss": "minimize", "accuracy": "maximize"}),
            "parameters": hyperparameter_tuning_job.serialize_parameters(specs),
        }
    )
    assert [(each.name, each.goal.name) for each in found.metrics] == [("loss", "MINIMIZE"), ("accuracy", "MAXIMIZE")]
    assert [each.name for each in found.parameters] == ["model", "depth", "rate", "size"]


INVALID: list[tuple[dict[str, Any], str]] = [
    ({"parameter_id": "x"}, "parameters[0] (x): expected one of double_value_spec, "),
    (KIND | UNITS | {"parameter_id": "x"}, "found integer_value_spec and categorical_value_spec"),
    (UNITS | {"scaleType": 1}, "unknown field 'scaleType'; did you mean scale_type?"),
    (UNITS | {"scale_type": "LOG"}, "parameters[0].scale_type: expected SCALE_TYPE_UNSPECIFIED, "),
    (UNITS | {"parameter_id": "two words"}, "parameter_id: expected a name without spaces"),
    ({"parameter_id": "x", "integer_value_spec": {"min_value": 1.5}}, "min_value: expected an integer, found 1.5"),
    ({"parameter_id": "x", "double_value_spec": {"min_value": "0.1"}}, "min_value: expected a number, found '0.1'"),
    ({"parameter_id": "x", "double_value_spec": {"max_value": math.inf}}, "max_value: expected a number, found inf"),
    ({"parameter_id": "x", "double_value_spec": {"min_value": 2}}, "min_value 2 is above max_value 0"),
    ({"parameter_id": "x", "integer_value_spec": {"default_value": 2}}, "default_value: hyperparameter tuning jobs"),
    ({"parameter_id": "x", "categorical_value_spec": {}}, "categorical_value_spec (x): the list of values is empty"),
    ({"parameter_id": "x", "categorical_value_spec": {"values": [1]}}, "values: expected a string, found 1"),
    ({"parameter_id": "x", "discrete_value_spec": {"values": [1, 1.0]}}, "the value 1.0 is repeated"),
    ({"parameter_id": "x", "discrete_value_spec": {"values": [*range(1001)]}}, "at most 1000 values are possible"),
    (KIND | {"scale_type": 1}, "scale_type (kind): leave it unset for a categorical parameter"),
    (
        {"parameter_id": "x", "integer_value_spec": {"max_value": 2}, "scale_type": 2},
        "UNIT_LOG_SCALE needs values above 0, found 0",
    ),
    (KIND | {"conditional_parameter_specs": [{}]}, "(kind): conditional parameters do not run locally"),
]


@pytest.mark.parametrize(("parameter", "message"), INVALID)
def test_a_parameter_that_breaks_a_rule_is_refused(parameter: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        study(parameter)
    assert str(caught.value).startswith("study_spec.parameters[0]")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"parameters": [UNITS, UNITS]}, "study_spec.parameters: 'units' is repeated"),
        ({"parameters": []}, "study_spec.parameters: expected at least one parameter_id"),
        ({"parameters": "x"}, "study_spec.parameters: expected a list, found 'x'"),
        ({"metrics": []}, "study_spec.metrics: expected at least one metric_id"),
        ({"metrics": [{"metric_id": "x", "goal": "UP"}]}, "study_spec.metrics[0].goal: expected GOAL_TYPE_UNSPECIFIED"),
        ({"metrics": [{"metric_id": "x", "safety_config": {}}]}, "safe search does not run locally"),
        ({"algorithm": "GRID_SEARCH", "parameters": [RATE]}, "GRID_SEARCH takes no double_value_spec (rate)"),
        ({"algorithm": 1}, "study_spec.algorithm: expected ALGORITHM_UNSPECIFIED, GRID_SEARCH or RANDOM_SEARCH"),
        ({"median_automated_stopping_spec": {}}, "study_spec.median_automated_stopping_spec: it does not run locally"),
    ],
)
def test_a_study_that_breaks_a_rule_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        read_study({"metrics": [{"metric_id": "loss"}], "parameters": [UNITS], **fields})
    assert message in str(caught.value)
