"""Release steps of the pipelines, for a model that reaches the minimum score, and the task at the end."""

from collections.abc import Callable
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
        checkpoint_directory: Of the run.
        dataset: The dataset written by `prepare`.
        settings: Of the compilation.
        evaluated: Outputs of `evaluate`.
        values: All settings and parameters of the pipeline, by name.
    """
    server = values["serving_image"] or settings.step_image
    model = {"checkpoint_directory": checkpoint_directory, "dataset": dataset}
    compared = step(compare(**model, **HERE, **inputs_of(compare, values | {"serving_image": server})), settings.image)
    with_gpus(compared, settings.steps)
    comparison = compared.outputs

    register(
        comparison,
        settings,
        values,
        export=lambda: export(
            **model,
            champion=comparison["champion"],
            own_image=settings.step_image,
            **HERE,
            **inputs_of(export, values),
        ),
        record=lambda **version: record(
            checkpoint_directory=checkpoint_directory,
            metrics=evaluated["metrics"],
            confusion_matrix=evaluated["confusion_matrix"],
            is_promoted=comparison["is_promoted"],
            **version,
            **HERE,
            **inputs_of(record, values),
        ),
        deploy=lambda version: deploy(
            **model,
            registered_version=version,
            predictions=evaluated["predictions"],
            **HERE,
            **inputs_of(deploy, values),
        ),
    )


def register(
    comparison: Any,
    settings: Settings,
    values: dict[str, Any],
    *,
    export: Callable[[], Any],
    record: Callable[..., Any],
    deploy: Callable[[Any], Any],
) -> None:
    """Add the steps after `compare`.

    Args:
        comparison: Outputs of `compare`.
        settings: Of the compilation.
        values: All settings and parameters of the pipeline, by name.
        export: Makes the task that describes the upload.
        record: Makes the task that completes it, from `registered_model` or `registered_version`.
        deploy: Makes the task that deploys a version.
    """

    def complete(**version: Any) -> None:
        recorded = step(record(**version), settings.step_image).set_display_name("record")
        with dsl.If(comparison["deploy_endpoint"] != "", name="asked-to-deploy"):
            step(deploy(recorded.output), settings.step_image).set_display_name("deploy")

    with dsl.If(comparison["next"] == "export", name="new-version"):
        exported = step(export(), settings.step_image).outputs
        uploaded = ModelUploadOp(
            display_name=values["model_name"],
            location=training_job.LOCATION,
            # Its launcher takes one without a resource name for none.
            parent_model=exported["parent_model"],
            unmanaged_container_model=exported["servable"],
            version_aliases=comparison["aliases"],
            labels=exported["Output"],
            encryption_spec_key_name=values["kms_key"],
        )
        uploaded.set_display_name("register").set_caching_options(False)
        complete(registered_model=uploaded.outputs["model"])
    with dsl.If(comparison["next"] == "record", name="already-registered"):
        complete(registered_version=comparison["registered_version"])
