"""The study of a tuning job: `check` refuses what a run refuses because of the API, and nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.v1.hyperparameter_tuning_job import HyperparameterTuningJobRunOp
from kfp import compiler, dsl
from machines_tests.conftest import TODAY, pool

from localvertex.machines import check_file

METRIC = {"metricId": "loss", "goal": "MINIMIZE"}
RATE = {"parameterId": "rate", "doubleValueSpec": {"minValue": 0.1, "maxValue": 0.9}}
KIND = {"parameterId": "kind", "categoricalValueSpec": {"values": ["a", "b"]}}


def job(*parameters: dict[str, Any], study: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """Return a job as the REST API has it."""
    spec = {"metrics": [METRIC], "parameters": [*(parameters or [RATE])], **(study or {})}
    trials = {"workerPoolSpecs": [pool()]}
    return {"studySpec": spec, "maxTrialCount": 4, "parallelTrialCount": 2, "trialJobSpec": trials, **fields}


def rate(**fields: Any) -> dict[str, Any]:
    return RATE | {"doubleValueSpec": fields}


CASES: list[tuple[dict[str, Any], list[tuple[str, str, str]]]] = [
    (job(), []),
    (job(maxFailedTrialCount=0, displayName="x", trials=[{}], state="JOB_STATE_RUNNING"), []),
    (job(maxTrialCount="4"), [("study", "warning", "maxTrialCount")]),
    (job(rate(minValue="0.1", maxValue=1)), [("study", "warning", "minValue")]),
    (job({"parameterId": "n", "integerValueSpec": {"minValue": "1", "maxValue": "9"}}), []),
    # What does not run locally is fine on Vertex AI.
    (job(study={"medianAutomatedStoppingSpec": {}, "observationNoise": "HIGH"}), []),
    (job(study={"metrics": [METRIC | {"safetyConfig": {"safetyThreshold": 1}}]}), []),
    (job(RATE | {"conditionalParameterSpecs": [{"parameterSpec": KIND}]}), []),
    # The API reference advises against these and does not say that they are refused.
    (job(KIND | {"scaleType": "UNIT_LINEAR_SCALE"}), [("study", "warning", "scaleType")]),
    (job({"parameterId": "n", "discreteValueSpec": {"values": [1, 1]}}), [("study", "warning", "discreteValueSpec")]),
    (job(rate(minValue=0.1, maxValue=0.9, defaultValue=0.2)), [("study", "warning", "defaultValue")]),
    (job(maxTrialCount=0), [("study", "error", "maxTrialCount")]),
    (job(parallelTrialCount=0), [("study", "error", "parallelTrialCount")]),
    (job(maxFailedTrialCount=-1), [("study", "error", "maxFailedTrialCount")]),
    (job(study={"metrics": [METRIC | {"goal": "UP"}]}), [("study", "error", "studySpec.metrics[0].goal")]),
    (job(rate(minValue=2, maxValue=1)), [("study", "error", "studySpec.parameters[0].doubleValueSpec")]),
    (job(study={"parameters": []}), [("study", "error", "studySpec.parameters")]),
    (job(studySpec={}), [("study", "error", "studySpec.metrics")]),
    (job(study={"algoritm": 1}), [("study", "error", "studySpec")]),
    (job(rate(minValue="low")), [("study", "error", "minValue")]),
]


@pytest.mark.parametrize(("document", "expected"), CASES)
def test_a_tuning_job_in_a_file(tmp_path: Path, document: dict[str, Any], expected: list[tuple[str, str, str]]) -> None:
    file = tmp_path / "job.json"
    file.write_text(json.dumps(document))
    found = check_file(file, today=TODAY)
    assert [(each.rule, each.severity) for each in found] == [each[:2] for each in expected]
    assert all(part in each.path for each, (_, _, part) in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    ("trials", "goal", "rules"),
    [(4, 1, []), (0, 1, ["study"]), (4, 7, ["study"])],
)
def test_a_tuning_job_of_a_pipeline(tmp_path: Path, trials: int, goal: int, rules: list[str]) -> None:
    @dsl.pipeline(name="tune", pipeline_root="gs://bucket/root")
    def tune(trials: int = trials, location: str = "europe-west4") -> None:
        units = {"parameter_id": "units", "integer_value_spec": {"min_value": 1, "max_value": 3}, "scale_type": 1}
        HyperparameterTuningJobRunOp(
            display_name="tune",
            location=location,
            study_spec_metrics=[{"metric_id": "loss", "goal": goal}],
            study_spec_parameters=[units],
            max_trial_count=trials,
            parallel_trial_count=1,
            worker_pool_specs=[pool()],
            base_output_directory="gs://bucket/out",
        ).set_caching_options(False)

    file = tmp_path / "tune.yaml"
    compiler.Compiler().compile(tune, str(file))
    found = check_file(file, today=TODAY)
    assert [(each.rule, each.severity) for each in found] == [(rule, "error") for rule in rules]
