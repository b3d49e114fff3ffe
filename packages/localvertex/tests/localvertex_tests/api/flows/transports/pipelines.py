"""Pipeline jobs and their schedules."""

from pathlib import Path
from typing import Any

from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import aiplatform
from localvertex_tests.api.flows.transports.flow import PIPELINE, flow

from vertex_testing.server import wait_until


def new(name: str, **options: Any) -> aiplatform.PipelineJob:
    """Build a job; its id is its name."""
    given = {"template_path": PIPELINE, "job_id": name, "parameter_values": {"rate": 0.25}} | options
    return aiplatform.PipelineJob(display_name=name, pipeline_root="gs://staging/root", **given)


def submitted(name: str, **options: Any) -> aiplatform.PipelineJob:
    """Submit a job."""
    job = new(name, **options)
    job.submit()
    return job


def unending(name: str) -> aiplatform.PipelineJob:
    """Submit a job that does not end by itself."""
    return submitted(name, parameter_values={"rate": 0.5, "seconds": 600})


@flow(["PIPELINE_STATE_SUCCEEDED", ["SUCCEEDED"], False])
def job_submit_and_wait() -> Any:
    job = submitted("submitted")
    job.wait()
    states = [each.state.name for each in job.task_details if each.task_name == "train"]
    return [job.state.name, states, job.has_failed]


@flow("PIPELINE_STATE_SUCCEEDED")
def job_run() -> Any:
    job = new("ran")
    job.run()
    return job.state.name


@flow("PIPELINE_STATE_SUCCEEDED")
def job_run_in_background() -> Any:
    job = new("ran-in-background")
    job.run(sync=False)
    job.wait()
    return job.state.name


@flow(["SKIPPED", "SUCCEEDED"])
def job_takes_a_step_from_the_cache_unless_disabled() -> Any:
    states = []
    for number, is_enabled in enumerate((None, True, False)):
        job = submitted(f"cached-{number}", parameter_values={"rate": 0.125}, enable_caching=is_enabled)
        job.wait()
        states += [each.state.name for each in job.task_details if each.task_name == "train"]
    return states[1:]


@flow(RuntimeError)
def job_that_fails() -> Any:
    submitted("fails", parameter_values={"rate": -1.0}).wait()


@flow(["PIPELINE_STATE_CANCELLED", True])
def job_cancel() -> Any:
    job = unending("cancelled")
    job.cancel()
    job.wait()
    return [job.state.name, job.done()]


@flow(exceptions.NotFound)
def job_delete() -> Any:
    job = submitted("deleted")
    job.wait()
    job.delete()
    aiplatform.PipelineJob.get(job.resource_name)


@flow(exceptions.FailedPrecondition)
def job_delete_while_running() -> Any:
    job = unending("deleted-early")
    try:
        job.delete()
    finally:
        job.cancel()


@flow([["listed-1", "listed-0"], ["listed-1"]])
def job_list() -> Any:
    for number in range(2):
        submitted(f"listed-{number}", labels={"number": str(number)}).wait()
    text = 'display_name:"listed-*" AND state="PIPELINE_STATE_SUCCEEDED"'
    found = aiplatform.PipelineJob.list(filter=text, order_by="create_time desc")
    return [[each.name for each in jobs] for jobs in (found, aiplatform.PipelineJob.list(filter="labels.number=1"))]


@flow([["in-short"], "training", []])
def job_list_in_a_simple_view() -> Any:
    submitted("in-short").wait()
    found = aiplatform.PipelineJob.list(filter="display_name=in-short", enable_simple_view=True)
    return [
        [each.name for each in found],
        found[0].pipeline_spec["pipelineInfo"]["name"],
        [*found[0].gca_resource.job_detail.task_details],
    ]


@flow(exceptions.InvalidArgument)
def job_list_with_a_wrong_filter() -> Any:
    aiplatform.PipelineJob.list(filter="(((")


@flow(["a clone", "PIPELINE_STATE_SUCCEEDED"])
def job_clone() -> Any:
    job = submitted("cloned")
    job.wait()
    clone = job.clone(display_name="a clone", job_id="clone")
    clone.submit()
    clone.wait()
    return [clone.display_name, clone.state.name]


@flow(["got", "PIPELINE_STATE_SUCCEEDED", 0.25])
def job_get() -> Any:
    submitted("got").wait()
    job = aiplatform.PipelineJob.get("got")
    return [job.display_name, job.state.name, job.runtime_config.parameter_values["rate"]]


@flow(exceptions.NotFound)
def job_get_that_is_missing() -> Any:
    aiplatform.PipelineJob.get("absent")


@flow(exceptions.AlreadyExists)
def job_id_that_exists() -> Any:
    for _ in range(2):
        submitted("twice").wait()


@flow(ValueError)
def job_id_that_is_wrong() -> Any:
    submitted("Wrong_Id")


@flow(ValueError)
def job_parameter_that_is_unknown() -> Any:
    submitted("unknown", parameter_values={"rate": 0.5, "momentum": 0.9})


@flow(exceptions.InvalidArgument)
def job_parameter_of_a_wrong_type() -> Any:
    submitted("wrong-type", parameter_values={"rate": "fast"})


@flow(exceptions.InvalidArgument)
def job_parameter_that_is_missing() -> Any:
    submitted("no-rate", parameter_values={})


@flow(exceptions.InvalidArgument)
def job_label_that_is_wrong() -> Any:
    submitted("wrong-label", labels={"Team": "Vision"})


@flow(FileNotFoundError)
def job_file_that_is_missing() -> Any:
    submitted("no-file", template_path="absent.yaml")


@flow(KeyError)
def job_file_that_is_no_pipeline() -> Any:
    Path("other.yaml").write_text("a: 1\n")
    submitted("other-file", template_path="other.yaml")


@flow(exceptions.PermissionDenied)
def job_list_without_a_token() -> Any:
    aiplatform.PipelineJob.list(credentials=AnonymousCredentials())


@flow(exceptions.Aborted)
def context_update_with_an_outdated_etag() -> Any:
    context = aiplatform.Context.create("system.Experiment", resource_id="outdated")
    context.api_client.update_context(context={"name": context.resource_name, "etag": "1"})


@flow(["joined", 0.25, 0.75])
def job_submit_with_an_experiment() -> Any:
    job = new("joined")
    job.submit(experiment="of-jobs")
    job.wait()
    (row,) = aiplatform.get_experiment_df("of-jobs").to_dict("records")
    return [row["run_name"], row["param.rate"], row["metric.accuracy"]]


@flow([0.25])
def pipeline_data_frame() -> Any:
    submitted("in-frame").wait()
    found = aiplatform.get_pipeline_df("training")
    return found[found.run_name == "in-frame"]["param.input:rate"].tolist()


def scheduled(name: str, **options: Any) -> aiplatform.PipelineJobSchedule:
    """Create a schedule that starts nothing before midnight of a new year."""
    given = {"cron": "TZ=Europe/Berlin 0 0 1 1 *", "display_name": name} | options
    return new(name).create_schedule(**given)


@flow(["ACTIVE", "TZ=Europe/Berlin 0 0 1 1 *", 3])
def schedule_create() -> Any:
    found = aiplatform.PipelineJobSchedule.get(scheduled("created", max_run_count=3).name)
    return [found.state.name, found.cron, found.max_run_count]


@flow(["PAUSED", "ACTIVE"])
def schedule_pause_and_resume() -> Any:
    schedule = scheduled("paused")
    schedule.pause()
    state = schedule.state.name
    schedule.resume()
    return [state, schedule.state.name]


@flow(["0 4 1 1 *", "changed"])
def schedule_update() -> Any:
    schedule = scheduled("updated")
    schedule.update(cron="0 4 1 1 *", display_name="changed")
    return [schedule.cron, schedule.display_name]


@flow([["found"], []])
def schedule_list_and_delete() -> Any:
    schedule, text = scheduled("found"), 'display_name="found"'
    found = [[each.display_name for each in aiplatform.PipelineJobSchedule.list(filter=text)]]
    schedule.delete()
    return [*found, aiplatform.PipelineJobSchedule.list(filter=text)]


@flow(["PIPELINE_STATE_SUCCEEDED"])
def schedule_runs_its_job() -> Any:
    schedule = scheduled("runs", cron="* * * * *", max_run_count=1)
    job = wait_until(schedule.list_jobs)[0]
    job.wait()
    return [job.state.name]


@flow(exceptions.InvalidArgument)
def schedule_with_a_wrong_cron() -> Any:
    scheduled("wrong", cron="every day")


@flow(exceptions.NotFound)
def schedule_get_that_is_missing() -> Any:
    aiplatform.PipelineJobSchedule.get("123")


@flow(exceptions.NotFound)
def schedule_update_after_its_deletion() -> Any:
    schedule = scheduled("gone")
    schedule.delete()
    schedule.update(cron="0 4 1 1 *")
