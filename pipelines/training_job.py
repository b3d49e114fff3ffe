"""The training job in a graph of its own, which later steps depend on even if the job is skipped."""

from typing import Any

from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl

LOCATION = "{{$.pipeline_google_cloud_location}}"
"""Resolved at run time to the region of the pipeline job; some components would default to us-central1."""
PROJECT = "{{$.pipeline_google_cloud_project_id}}"
"""Resolved at run time to the project of the pipeline job."""
PERSISTENT_RESOURCE = "{{$.pipeline_persistent_resource_id}}"
"""Resolved at run time to the persistent resource of the pipeline job; empty if it has none."""


def _train_unless(is_finished: Any, *, scheduling_strategy: Any, kms_key: Any, **job: Any) -> None:
    with dsl.If(is_finished == False, name="not-finished"):  # noqa: E712 - this builds an expression
        CustomTrainingJobOp(
            location=LOCATION, strategy=scheduling_strategy, encryption_spec_key_name=kms_key, **job
        ).set_display_name("train").set_caching_options(False)


@dsl.pipeline(name="train-unless-finished", description="Requests the machines unless this run is already complete.")
def train_unless_finished(
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
    _train_unless(**locals())


@dsl.pipeline(name="train-unless-finished", description="Requests the machines unless this run is already complete.")
def train_with_labels_unless_finished(
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
    labels: dict[str, str],
) -> None:
    """Run the training job, which gets labels, unless it is finished."""
    _train_unless(**locals())
