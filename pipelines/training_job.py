"""The training job in a graph of its own, which later steps depend on even if the job is skipped."""

import dataclasses
import inspect
from typing import Any

from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl

from pipelines import signature

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
