"""The training job in a graph of its own, which later steps depend on even if the job is skipped."""

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl

from components.train.fallbacks import FIELDS, overlaid
from components.train.train import train
from pipelines import signature
from pipelines.settings import Settings
from pipelines.steps import inputs_of, step

LOCATION = "{{$.pipeline_google_cloud_location}}"
"""Resolved at run time to the region of the pipeline job; some components would default to us-central1."""
PROJECT = "{{$.pipeline_google_cloud_project_id}}"
"""Resolved at run time to the project of the pipeline job."""
PERSISTENT_RESOURCE = "{{$.pipeline_persistent_resource_id}}"
"""Resolved at run time to the persistent resource of the pipeline job; empty if it has none."""


def _inputs(
    is_finished: bool,
    worker_pool_specs: list[dict[str, str]],
    restart_job_on_worker_restart: bool,
    timeout: str,
    display_name: str,
    base_output_directory: str,
    scheduling_strategy: str,
    max_wait_duration: str,
    persistent_resource_id: str,
    service_account: str,
    network: str,
    tensorboard: str,
    kms_key: str,
) -> None:
    """Run the training job unless it is finished."""


def _graph(job: dict[str, Any]) -> None:
    with dsl.If(job.pop("is_finished") == False, name="not-finished"):  # noqa: E712 - this builds an expression
        CustomTrainingJobOp(
            location=LOCATION,
            strategy=job.pop("scheduling_strategy"),
            encryption_spec_key_name=job.pop("kms_key"),
            **job,
        ).set_display_name("train").set_caching_options(False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Labels:
    labels: dict[str, str] = dataclasses.field(metadata={"help": "Labels of the training job."})


_job = dsl.pipeline(
    name="train-unless-finished", description="Requests the machines unless this run is already complete."
)
train_unless_finished = _job(signature.declare(_inputs, (), {})(_graph))
train_with_labels_unless_finished = _job(
    signature.declare(_inputs, dataclasses.fields(_Labels), {"labels": inspect.Parameter.empty})(_graph)
)
"""A second component, because an input for labels would appear in every compiled file of the image pipeline."""

_RETRIES = 3
"""Attempts of a step whose machine is lost; each finds the job of the attempt before it."""


def trained(settings: Settings, values: Mapping[str, Any], fixed: Mapping[str, Any]) -> Any:
    """Add the training of a run to the graph, and return its task.

    Without fallbacks, Google's operation trains; with fallbacks, a step that creates one custom job after another.

    Args:
        settings: Settings of the compilation.
        values: All settings, parameters of the pipeline and outputs of `plan`, by name.
        fixed: Constants, as `plan` gets them.
    """
    if not settings.fallbacks.fallbacks:
        job = train_with_labels_unless_finished if "labels" in values else train_unless_finished
        return job(**inputs_of(job, values))
    given = {"labels": {}, **values, "region": LOCATION, "settings": dict(fixed)}
    given |= {"pipeline_root": dsl.PIPELINE_ROOT_PLACEHOLDER, "task": dsl.PIPELINE_TASK_ID_PLACEHOLDER}
    first = {name: values[name] for name in (*FIELDS, "parameter_server_count", "persistent_resource_id")}
    given["candidates"] = overlaid(first, settings.fallbacks.fallbacks)
    task = step(train(**inputs_of(train, given)), settings.step_image)
    return task.set_display_name("train").set_retry(num_retries=_RETRIES)
