# ruff: noqa: ANN201, UP045 - kfp reads the signatures, and knows Optional but no `|`.
"""Writes the probe's template: `python -m localvertex_tests.commands.probe_pipeline`.

kfp and Google's own component of custom jobs make it, so that the file is what Vertex AI takes. `probe compile` puts
the text of program.py where the template has PROGRAM.
"""

import json
import tempfile
import warnings
from pathlib import Path
from typing import Any, Optional

from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import compiler, dsl

from localvertex import probe

TEMPLATE = Path(probe.__file__).with_name("pipeline.json")
IMAGE, MACHINE = "python:3.11", "e2-standard-4"
BASE = "{{$.pipeline_root}}/localvertex-probe-{{$.pipeline_job_uuid}}"
LANES = (
    (("0",),),
    (("1",), ("2",), ("126",)),
    (("134",) * 4, ("139", "127")),
    ((*("143",) * 6, "11"), ("137", "6")),
)
"""Exit codes of workers, for each job those that its worker has in turn; the jobs of a lane run one after another.

All jobs at once would need more processors than the quota of a new project. The code that surely is not restarted is
the last one of its job; `probe run` replaces the timeout of the first job.
"""
TIMEOUT, SHORT_TIMEOUT = "900s", "300s"
PLACEHOLDERS = (
    "pipeline_root",
    "pipeline_job_name",
    "pipeline_job_uuid",
    "pipeline_job_resource_name",
    "pipeline_job_create_time_utc",
    "pipeline_job_schedule_time_utc",
    "pipeline_google_cloud_project_id",
    "pipeline_google_cloud_location",
    "pipeline_task_name",
    "pipeline_task_uuid",
)


def program(*arguments: Any) -> dsl.ContainerSpec:
    """Return a container that runs the recording program."""
    return dsl.ContainerSpec(image=IMAGE, command=["python3", "-c", "PROGRAM"], args=[*arguments])


@dsl.container_component
def step(empty: str, integer: int, numbers: dict, record: dsl.Output[dsl.Artifact]):
    """Record what a step sees."""
    known = [f"{name}={{{{$.{name}}}}}" for name in PLACEHOLDERS]
    return program("step", BASE, "{{$}}", integer, *known)


@dsl.container_component
def optional(null: Optional[str] = None):
    """Record a parameter without a value."""
    return program("optional", BASE, "{{$}}", null)


@dsl.container_component
def fails(done: dsl.OutputPath(str)):
    """Fail."""
    return program("attempt", BASE, "retried", "1")


@dsl.container_component
def attempt(name: str, job: str):
    """Count an execution."""
    return program("attempt", BASE, name, "0")


@dsl.container_component
def collect(status: dsl.PipelineTaskFinalStatus, probe: dsl.Output[dsl.Artifact]):
    """Put the record together."""
    return program("collect", BASE, "{{$}}", "{{$.pipeline_google_cloud_location}}")


def job(name: str, *arguments: str, timeout: str = TIMEOUT) -> dsl.PipelineTask:
    """Return a custom job of a primary and a worker."""
    pool = {
        "machine_spec": {"machine_type": MACHINE},
        "replica_count": 1,
        "container_spec": {
            "image_uri": IMAGE,
            "command": ["python3", "-c", "PROGRAM"],
            "args": [arguments[0], BASE, *arguments[1:]],
        },
    }
    task = CustomTrainingJobOp(
        display_name=f"localvertex-probe-{name}",
        worker_pool_specs=[pool, pool],
        base_output_directory=BASE,
        timeout=timeout,
    )
    task.set_display_name(name).set_caching_options(False)
    return task


@dsl.pipeline(name="localvertex-probe")
def pipeline():
    """Record what the platform does."""
    with dsl.ExitHandler(collect()):
        step(empty="", integer=3, numbers={"half": 0.5, "whole": 1}).set_caching_options(False)
        optional().set_caching_options(False)
        job("replicas", "replica")
        for lane in LANES:
            before = None
            for codes in lane:
                timeout = SHORT_TIMEOUT if codes == ("0",) else TIMEOUT
                task = job(f"exit-{codes[0]}", "exits", *codes, timeout=timeout)
                if before:
                    # kfp 2.17's ignore_upstream_failure() fails for inputs that keep their default.
                    task.after(before)._ignore_upstream_failure_tag = True
                before = task
        failed = fails().set_caching_options(False).set_retry(1)
        with dsl.If(failed.outputs["done"] == "done", name="condition-on-failed"):
            attempt(name="condition", job=dsl.PIPELINE_JOB_ID_PLACEHOLDER)
        attempt(name="after", job=dsl.PIPELINE_JOB_ID_PLACEHOLDER).after(failed)
        attempt(name="ignoring", job=dsl.PIPELINE_JOB_ID_PLACEHOLDER).after(failed).ignore_upstream_failure()
        first = attempt(name="cached", job=dsl.PIPELINE_JOB_ID_PLACEHOLDER)
        attempt(name="cached", job=dsl.PIPELINE_JOB_ID_PLACEHOLDER).after(first)


def written() -> str:
    """Return the template."""
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiler.Compiler().compile(pipeline, f"{name}/pipeline.json")
        spec = json.loads(Path(name, "pipeline.json").read_text())
    return json.dumps(_without_descriptions(spec), indent=1) + "\n"


def _without_descriptions(value: Any) -> Any:
    """Leave out Google's texts about each of its parameters."""
    if isinstance(value, list):
        return [_without_descriptions(each) for each in value]
    if isinstance(value, dict):
        return {name: _without_descriptions(each) for name, each in value.items() if name != "description"}
    return value


if __name__ == "__main__":
    TEMPLATE.write_text(written())
