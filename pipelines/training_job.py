"""The training job in a graph of its own, which later steps depend on even if the job is skipped."""

from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl

LOCATION = "{{$.pipeline_google_cloud_location}}"
"""Resolved at run time to the region of the pipeline job; some components would default to us-central1."""
PROJECT = "{{$.pipeline_google_cloud_project_id}}"
"""Resolved at run time to the project of the pipeline job."""
PERSISTENT_RESOURCE = "{{$.pipeline_persistent_resource_id}}"
"""Resolved at run time to the persistent resource of the pipeline job; empty if it has none."""


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
    with dsl.If(is_finished == False, name="not-finished"):  # noqa: E712 - this builds an expression
        CustomTrainingJobOp(
            display_name=display_name,
            location=LOCATION,
            worker_pool_specs=worker_pool_specs,
            timeout=timeout,
            restart_job_on_worker_restart=restart_job_on_worker_restart,
            base_output_directory=base_output_directory,
            strategy=scheduling_strategy,
            max_wait_duration=max_wait_duration,
            persistent_resource_id=persistent_resource_id,
            service_account=service_account,
            network=network,
            tensorboard=tensorboard,
            encryption_spec_key_name=kms_key,
        ).set_display_name("train").set_caching_options(False)
