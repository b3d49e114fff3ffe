"""Release steps of the pipelines, for a model that reaches the minimum score, and the task at the end."""

from collections.abc import Mapping
from typing import Any

from google_cloud_pipeline_components.v1.model import ModelUploadOp
from google_cloud_pipeline_components.v1.vertex_notification_email import VertexNotificationEmailOp
from kfp import dsl

from components.compare.compare import compare
from components.export.export import export
from components.release.deploy import deploy
from components.release.record import record
from components.summary.summary import summary
from pipelines import training_job
from pipelines.settings import Settings
from pipelines.steps import inputs_of, step, with_gpus

HERE = {"region": training_job.LOCATION, "pipeline_root": dsl.PIPELINE_ROOT_PLACEHOLDER}


def exit_task(settings: Settings) -> Any:
    """Return the task that runs at the end, whatever happened: `summary`, or Google's e-mail."""
    if recipients := settings.notification.notify:
        return VertexNotificationEmailOp(recipients=recipients).set_caching_options(False)
    return step(summary(**inputs_of(summary, settings.values)), settings.step_image)


def release(
    checkpoint_directory: Any, dataset: Any, settings: Settings, *, evaluated: Any, values: dict[str, Any]
) -> None:
    """Add the steps from `compare` on.

    Args:
        checkpoint_directory: Checkpoint folder of the run.
        dataset: The dataset written by `prepare`.
        settings: Settings of the compilation.
        evaluated: Outputs of `evaluate`.
        values: All settings and parameters of the pipeline, by name.
    """
    server = values["serving_image"] or settings.step_image
    model = {"checkpoint_directory": checkpoint_directory, "dataset": dataset}
    compared = step(compare(**model, **HERE, **inputs_of(compare, values | {"serving_image": server})), settings.image)
    with_gpus(compared, settings.steps)
    given = values | evaluated | model | {"own_image": settings.step_image}
    register(compared.outputs, settings, given, export=export, record=record, deploy=deploy)


def register(
    comparison: Any, settings: Settings, values: Mapping[str, Any], *, export: Any, record: Any, deploy: Any
) -> None:
    """Add the steps after `compare`.

    Args:
        comparison: Outputs of `compare`.
        settings: Settings of the compilation.
        values: Settings, parameters and outputs of earlier steps; a component takes those that it has an input for.
        export: Component that describes the upload.
        record: Component that completes it, from `registered_model` or `registered_version`.
        deploy: Component that deploys a version.
    """
    given = {**values, **HERE, **{name: comparison[name] for name in ("champion", "is_promoted")}}

    def add(component: Any, **version: Any) -> Any:
        return step(component(**inputs_of(component, given | version)), settings.step_image)

    def complete(**version: Any) -> None:
        recorded = add(record, deploy_endpoint=comparison["deploy_endpoint"], **version).set_display_name("record")
        with dsl.If(recorded.outputs["deploy_endpoint"] != "", name="asked-to-deploy"):
            add(deploy, registered_version=recorded.outputs["registered_version"]).set_display_name("deploy")

    with dsl.If(comparison["next"] == "export", name="new-version"):
        exported = add(export).outputs
        uploaded = ModelUploadOp(
            display_name=values["model_name"],
            location=training_job.LOCATION,
            # Its launcher takes one without a resource name for none.
            parent_model=exported["parent_model"],
            unmanaged_container_model=exported["servable"],
            labels=exported["Output"],
            encryption_spec_key_name=values["kms_key"],
        )
        uploaded.set_display_name("register").set_caching_options(False)
        complete(registered_model=uploaded.outputs["model"])
    with dsl.If(comparison["next"] == "record", name="already-registered"):
        complete(registered_version=comparison["registered_version"])
