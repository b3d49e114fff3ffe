"""Release steps of the pipeline, for a model that reaches the minimum score."""

from typing import Any

from google_cloud_pipeline_components.v1.model import ModelUploadOp
from kfp import dsl

from components.compare.compare import compare
from components.export.export import export
from components.release.deploy import deploy
from components.release.record import record
from pipelines import training_job
from pipelines.settings import Settings
from pipelines.steps import inputs_of, step, with_gpus

_HERE = {"region": training_job.LOCATION, "pipeline_root": dsl.PIPELINE_ROOT_PLACEHOLDER}


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
    compared = step(compare(**model, **_HERE, **inputs_of(compare, values | {"serving_image": server})), settings.image)
    with_gpus(compared, settings.steps)
    comparison = compared.outputs

    def complete(**version: Any) -> None:
        recorded = record(
            checkpoint_directory=checkpoint_directory,
            metrics=evaluated["metrics"],
            confusion_matrix=evaluated["confusion_matrix"],
            is_promoted=comparison["is_promoted"],
            **version,
            **_HERE,
            **inputs_of(record, values),
        )
        step(recorded, settings.step_image).set_display_name("record")
        with dsl.If(comparison["deploy_endpoint"] != "", name="asked-to-deploy"):
            deployed = deploy(
                **model,
                registered_version=recorded.output,
                predictions=evaluated["predictions"],
                **_HERE,
                **inputs_of(deploy, values),
            )
            step(deployed, settings.step_image).set_display_name("deploy")

    with dsl.If(comparison["next"] == "export", name="new-version"):
        exported = step(
            export(
                **model,
                champion=comparison["champion"],
                own_image=settings.step_image,
                **_HERE,
                **inputs_of(export, values),
            ),
            settings.step_image,
        ).outputs
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
