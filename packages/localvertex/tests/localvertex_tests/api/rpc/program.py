"""A program that uses the SDK as a user does, with its default transport; prints what it saw as JSON.

It needs a process of its own, because grpc reads its roots once. Arguments: endpoint, pipeline, work folder.
"""

import asyncio
import json
import sys
import warnings
from pathlib import Path
from typing import Any

warnings.simplefilter("ignore")

from google.api_core import exceptions  # noqa: E402
from google.api_core.client_options import ClientOptions  # noqa: E402
from google.cloud import aiplatform, aiplatform_v1  # noqa: E402
from google.cloud.aiplatform import hyperparameter_tuning, jobs, pipeline_jobs, training_jobs  # noqa: E402

from localvertex import client as localvertex_client  # noqa: E402

PARENT = "projects/local-project/locations/us-central1"
ENDPOINT, COMPILED, WORK_DIR = sys.argv[1:]
CREDENTIALS = localvertex_client.Credentials(WORK_DIR)
ROOT: Any = {"pipeline_root": "/unused"}
OPTIONS: Any = {"credentials": CREDENTIALS, "client_options": ClientOptions(api_endpoint=ENDPOINT)}


def pipelines() -> dict[str, Any]:
    job = aiplatform.PipelineJob(
        "small run", COMPILED, job_id="first", parameter_values={"n": 4}, labels={"a": "b"}, **ROOT
    )
    transport = type(job.api_client.transport).__name__
    job.submit()
    job.wait()
    long = aiplatform.PipelineJob("long run", COMPILED, job_id="long", parameter_values={"seconds": 600}, **ROOT)
    long.submit()
    listed = [each.name for each in aiplatform.PipelineJob.list(filter='display_name:"small*"')]
    long.cancel()
    long._block_until_complete()
    state = long.state.name
    long.delete()
    return {
        "transport": transport,
        "job": job.state.name,
        "listed": listed == [job.name],
        "cancelled": state,
        "left": len(aiplatform.PipelineJob.list()),
    }


def schedules() -> dict[str, Any]:
    job = aiplatform.PipelineJob("small run", COMPILED, **ROOT)
    schedule = job.create_schedule(cron="0 3 * * *", display_name="nightly", max_run_count=3)
    schedule.pause()
    states = [schedule.state.name]
    schedule.resume()
    states.append(schedule.state.name)
    schedule.update(cron="0 4 * * *")
    found = [each.cron for each in aiplatform.PipelineJobSchedule.list(filter='display_name="nightly"')]
    schedule.delete()
    return {"states": states, "found": found, "left": len(aiplatform.PipelineJobSchedule.list())}


def models() -> dict[str, Any]:
    how: dict[str, Any] = {"display_name": "digits", "serving_container_image_uri": "serving:1"}
    first = aiplatform.Model.upload(labels={"team": "v"}, **how)
    aiplatform.Model.upload(parent_model=first.resource_name, version_aliases=["champion"], **how)
    versions = aiplatform.models.ModelRegistry(first.resource_name).list_versions()
    first.update(description="changed")
    listed = [(each.display_name, each.description) for each in aiplatform.Model.list()]
    first.delete()
    return {
        "versions": {each.version_id: list(each.version_aliases) for each in versions},
        "listed": listed,
        "left": len(aiplatform.Model.list()),
    }


def custom_jobs() -> dict[str, Any]:
    pool = {
        "machine_spec": {"machine_type": "n1-standard-4"},
        "replica_count": 1,
        "container_spec": {"image_uri": "python:3.11", "command": [sys.executable, "-c", "print(3)"]},
    }
    job = aiplatform.CustomJob("job", worker_pool_specs=[pool], staging_bucket="gs://bucket")
    job.run()
    return {"state": job.state.name, "listed": len(aiplatform.CustomJob.list())}


SERVING = Path(__file__).parents[2] / "support" / "serving.py"

TRAIN = """
import os, pathlib
folder = pathlib.Path(os.environ["AIP_MODEL_DIR"])
folder.mkdir(parents=True, exist_ok=True)
(folder / "weights").write_text("w")
"""

REPORT = """
import json, os
with open(os.environ["CLOUD_ML_HP_METRIC_FILE"], "w") as file:
    file.write(json.dumps({"loss": "0.5", "global_step": "1"}) + chr(10))
"""


def other_jobs() -> dict[str, Any]:
    training = aiplatform.CustomContainerTrainingJob(
        "training",
        "python:3.11",
        command=[sys.executable, "-c", TRAIN],
        model_serving_container_image_uri="serving:1",
        model_serving_container_command=["python", "-P", str(SERVING)],
        model_serving_container_predict_route="/predict",
        model_serving_container_health_route="/health",
    )
    model = training.run(model_display_name="trained")
    pool = {
        "machine_spec": {"machine_type": "n1-standard-4"},
        "replica_count": 1,
        "container_spec": {"image_uri": "python:3.11", "command": [sys.executable, "-c", REPORT]},
    }
    tuning = aiplatform.HyperparameterTuningJob(
        "tuning",
        aiplatform.CustomJob("job", worker_pool_specs=[pool], staging_bucket="gs://bucket"),
        metric_spec={"loss": "minimize"},
        parameter_spec={"units": hyperparameter_tuning.IntegerParameterSpec(min=1, max=8, scale="linear")},
        max_trial_count=2,
        parallel_trial_count=2,
    )
    tuning.run()
    lines = Path(WORK_DIR) / "buckets" / "bucket" / "lines.jsonl"
    lines.write_text("1\n")
    prediction = model.batch_predict(
        "prediction",
        gcs_source="gs://bucket/lines.jsonl",
        gcs_destination_prefix="gs://bucket/predictions",
        machine_type="n1-standard-4",
    )
    found = {
        "pipeline": [training.state.name, model.display_name, model.version_id],
        "tuning": [tuning.state.name, [each.state.name for each in tuning.trials]],
        "prediction": [prediction.state.name, prediction.completion_stats.successful_count],
        "listed": [len(type(each).list()) for each in (training, tuning, prediction)],
    }
    for each in (training, tuning, prediction, model):
        each.delete()
    return found | {"left": [len(type(each).list()) for each in (training, tuning, prediction)]}


def refusals() -> dict[str, Any]:
    client = aiplatform_v1.PipelineServiceClient(**OPTIONS)
    calls: dict[str, Any] = {
        "absent": lambda: client.get_pipeline_job(name=f"{PARENT}/pipelineJobs/absent"),
        "filter": lambda: list(client.list_pipeline_jobs(request={"parent": PARENT, "filter": "((("})),
        "empty": lambda: client.create_pipeline_job(parent=PARENT, pipeline_job={"display_name": "x"}),
        "unserved": lambda: aiplatform_v1.DatasetServiceClient(**OPTIONS).list_datasets(parent=PARENT),
    }
    found = {}
    for name, call in calls.items():
        try:
            call()
        except exceptions.GoogleAPICallError as error:
            found[name] = [error.grpc_status_code.name if error.grpc_status_code else "", error.message]
    return found


async def asynchronous() -> int:
    client = aiplatform_v1.PipelineServiceAsyncClient(**OPTIONS)
    return len([each async for each in await client.list_pipeline_jobs(parent=PARENT)])


def main() -> None:
    for module in (pipeline_jobs, jobs, training_jobs):
        # The SDK polls every 5 s, which is too slow for a test.
        module._JOB_WAIT_TIME = 0.2
    aiplatform.init(
        project="local-project",
        location="us-central1",
        staging_bucket="gs://bucket",
        api_endpoint=ENDPOINT,
        credentials=CREDENTIALS,
    )
    found = {each.__name__: each() for each in (pipelines, schedules, models, custom_jobs, other_jobs)}
    found["asynchronous"] = {"jobs": asyncio.run(asynchronous())}
    found |= {each.__name__: each() for each in (refusals,)}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
