"""Placeholders of the job and the task, in text, in commands and in constants."""

from kfp import dsl
from localvertex_tests.constructs.construct import construct

from vertex_testing.runs import STEP


@dsl.component(**STEP)
def check_job(name: str, resource: str, job_id: str, created: str, scheduled: str, root: str) -> str:
    import os
    from datetime import datetime

    assert resource == f"projects/local-project/locations/us-central1/pipelineJobs/{name}", resource
    assert job_id.isdigit(), job_id
    assert datetime.fromisoformat(created) <= datetime.fromisoformat(scheduled), (created, scheduled)
    assert os.path.isdir(os.path.join(root, name)), (root, name)
    return "checked"


@construct(outputs={"Output": "checked"}, kfp_local="list index out of range")
@dsl.pipeline(name="placeholders-of-the-job")
def placeholders_of_the_job() -> str:
    return check_job(
        name=dsl.PIPELINE_JOB_NAME_PLACEHOLDER,
        resource=dsl.PIPELINE_JOB_RESOURCE_NAME_PLACEHOLDER,
        job_id=dsl.PIPELINE_JOB_ID_PLACEHOLDER,
        created=dsl.PIPELINE_JOB_CREATE_TIME_UTC_PLACEHOLDER,
        scheduled=dsl.PIPELINE_JOB_SCHEDULE_TIME_UTC_PLACEHOLDER,
        root=dsl.PIPELINE_ROOT_PLACEHOLDER,
    ).output


@dsl.component(**STEP)
def check_task(name: str, task_id: str, text: str, table: dict) -> str:
    assert task_id.isdigit(), task_id
    return f"{name} {text == f'task {name} has {task_id}'} {table == {'name': name}}"


@construct(outputs={"Output": "check-task True True"})
@dsl.pipeline(name="placeholders-of-the-task")
def placeholders_of_the_task() -> str:
    name, task_id = dsl.PIPELINE_TASK_NAME_PLACEHOLDER, dsl.PIPELINE_TASK_ID_PLACEHOLDER
    return check_task(name=name, task_id=task_id, text=f"task {name} has {task_id}", table={"name": name}).output


@dsl.container_component
def in_command(text: str, out: dsl.OutputPath(str)) -> dsl.ContainerSpec:
    words = ["{{$.inputs.parameters['text'].json_escape[1]}}", '{{$.inputs.parameters["text"]}}']
    script = 'printf "%s|" "$@" > "$0"'
    return dsl.ContainerSpec(image="python:3.11", command=["bash", "-c", script, out], args=words)


@construct(
    parameters={"text": 'a "b" {{$.pipeline_root}}'},
    outputs={"Output": 'a \\"b\\" {{$.pipeline_root}}|a "b" {{$.pipeline_root}}|'},
    kfp_local="JSON escape placeholders are not supported",
)
@dsl.pipeline(name="escaped-placeholders")
def escaped_placeholders(text: str) -> str:
    return in_command(text=text).output


@dsl.component(**STEP)
def echo(text: str) -> str:
    return text


@construct(refused="the placeholder {{$.pipeline_moon_phase}} is unknown", kfp_local="list index out of range")
@dsl.pipeline(name="unknown-placeholder")
def unknown_placeholder() -> str:
    return echo(text="{{$.pipeline_moon_phase}}").output
