"""A step that asks for the trials of a tuning job by its `gcp_resources`."""

import json
from pathlib import Path

import pytest
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl
from localvertex_tests.support.tuning import ACCURACY, UNITS, pool, tune

from vertex_testing.runs import STEP, Execute, FindTask

URI = "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/us-central1"


# The next functions are those of google-cloud-pipeline-components 1.0.44
# (experimental/hyperparameter_tuning_job/utils.py), without the packages that they install.
@dsl.component(**STEP)
def GetTrialsOp(gcp_resources: str) -> list:
    from google.cloud import aiplatform
    from google.cloud.aiplatform_v1.types import study
    from google.protobuf.json_format import Parse
    from google_cloud_pipeline_components.proto.gcp_resources_pb2 import GcpResources

    gcp_resources_proto = Parse(gcp_resources, GcpResources())
    _, projects, rest = gcp_resources_proto.resources[0].resource_uri.partition("projects")
    job_client = aiplatform.gapic.JobServiceClient()
    response = job_client.get_hyperparameter_tuning_job(name=projects + rest)

    return [study.Trial.to_json(trial) for trial in response.trials]


@dsl.component(**STEP)
def GetBestTrialOp(trials: list, study_spec_metrics: list) -> str:
    from google.cloud.aiplatform_v1.types import study

    if len(study_spec_metrics) > 1:
        raise RuntimeError("Unable to determine best parameters for multi-objective hyperparameter tuning.")
    trials_list = [study.Trial.from_json(trial) for trial in trials]
    best_fn = None
    goal = study_spec_metrics[0]["goal"]
    if goal == study.StudySpec.MetricSpec.GoalType.MAXIMIZE:
        best_fn = max
    elif goal == study.StudySpec.MetricSpec.GoalType.MINIMIZE:
        best_fn = min
    best_trial = best_fn(trials_list, key=lambda trial: trial.final_measurement.metrics[0].value)
    return study.Trial.to_json(best_trial)


@dsl.component(**STEP)
def GetHyperparametersOp(trial: str) -> list:
    from google.cloud.aiplatform_v1.types import study

    trial_proto = study.Trial.from_json(trial)
    return [study.Trial.Parameter.to_json(param) for param in trial_proto.parameters]


@dsl.component(**STEP)
def GetWorkerPoolSpecsOp(best_hyperparameters: list, worker_pool_specs: list) -> list:
    from google.cloud.aiplatform_v1.types import study

    for worker_pool_spec in worker_pool_specs:
        if "args" not in worker_pool_spec["container_spec"]:
            worker_pool_spec["container_spec"]["args"] = []
        for param in best_hyperparameters:
            p = study.Trial.Parameter.from_json(param)
            worker_pool_spec["container_spec"]["args"].append(f"--{p.parameter_id}={p.value}")
    return worker_pool_specs


@dsl.pipeline(name="trials")
def trials(pools: list, parameters: list) -> None:
    job = tune(pools=pools, parameters=parameters)
    GetTrialsOp(gcp_resources=job.output)


REPORTS = "report('accuracy', int(given['units']) % 3, 4)"


def test_the_trials_of_a_job_are_read_from_its_step_without_a_call(
    execute: Execute, task: FindTask, tmp_path: Path
) -> None:
    record = execute(trials, {"pools": [pool(REPORTS, tmp_path)], "parameters": [UNITS]})
    assert record["state"] == "SUCCEEDED", record["error"]
    found = [json.loads(each) for each in task(record, "gettrialsop")["outputs"]["parameters"]["Output"]]
    assert [each["parameters"] for each in found] == [[{"parameterId": "units", "value": n}] for n in (1, 2, 3)]
    assert [each["finalMeasurement"]["metrics"][0]["value"] for each in found] == [1, 2, 0]
    assert [each["state"] for each in found] == [4, 4, 4]


@dsl.pipeline(name="foreign")
def foreign(resources: str) -> None:
    GetTrialsOp(gcp_resources=resources)


def test_the_trials_of_a_job_that_did_not_run_here_are_not_asked_for(execute: Execute) -> None:
    resource = {"resourceType": "HyperparameterTuningJob", "resourceUri": f"{URI}/hyperparameterTuningJobs/1"}
    record = execute(foreign, {"resources": json.dumps({"resources": [resource]})})
    assert f"{URI}/hyperparameterTuningJobs/1 is not a tuning job that ran in " in record["error"]


@pytest.mark.parametrize("resources", ["none", '{"resources": []}'])
def test_resources_that_name_no_job_fail_the_step_in_one_line(execute: Execute, resources: str) -> None:
    record = execute(foreign, {"resources": resources})
    assert record["error"].startswith("gettrialsop: gcp_resources")
    assert "\n" not in record["error"]


@dsl.pipeline(name="best")
def best(pools: list, parameters: list, metrics: list = [ACCURACY]) -> None:  # noqa: B006
    job = tune(pools=pools, parameters=parameters, metrics=metrics)
    found = GetTrialsOp(gcp_resources=job.output)
    chosen = GetBestTrialOp(trials=found.output, study_spec_metrics=metrics)
    hyperparameters = GetHyperparametersOp(trial=chosen.output)
    specs = GetWorkerPoolSpecsOp(best_hyperparameters=hyperparameters.output, worker_pool_specs=pools)
    CustomTrainingJobOp(display_name="final", worker_pool_specs=specs.output)


@pytest.mark.slow
def test_the_best_hyperparameters_train_the_final_model(execute: Execute, task: FindTask, tmp_path: Path) -> None:
    pools = [pool(f"if trial != 'final': {REPORTS}", tmp_path)]
    record = execute(best, {"pools": pools, "parameters": [UNITS]})
    assert record["state"] == "SUCCEEDED", record["error"]
    from google.cloud.aiplatform_v1.types import study

    for text in task(record, "gettrialsop")["outputs"]["parameters"]["Output"]:
        assert json.loads(study.Trial.to_json(study.Trial.from_json(text))) == json.loads(text)
    arguments, _ = json.loads((tmp_path / "start-final").read_text())
    assert arguments == ["--units=2.0"]
