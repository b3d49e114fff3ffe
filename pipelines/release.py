"""Release steps of the pipeline, for a model that reaches the minimum score."""

from typing import Any

from google_cloud_pipeline_components.types.artifact_types import UnmanagedContainerModel, VertexModel
from google_cloud_pipeline_components.v1.model import ModelUploadOp
from kfp import dsl

from components.compare.compare import compare
from components.export.export import export
from components.release.deploy import deploy
from components.release.record import record
from pipelines import registered, training
from pipelines.servable import servable
from pipelines.settings import Settings
from pipelines.steps import inputs_of, step, with_gpus

_HERE = {"region": training.LOCATION, "pipeline_root": dsl.PIPELINE_ROOT_PLACEHOLDER}


@dsl.pipeline(name="new-version", description="Adds a version to the parent model, or makes the first version.")
def new_version(
    servable_model: dsl.Input[UnmanagedContainerModel],
    parent_model: str,
    model_name: str,
    labels: dict[str, str],
    aliases: list[str],
    kms_key: str,
) -> VertexModel:
    """Upload the model: an optional artifact, such as the parent, needs two branches."""
    given = {
        "display_name": model_name,
        "location": training.LOCATION,
        "unmanaged_container_model": servable_model,
        "version_aliases": aliases,
        "labels": labels,
        "encryption_spec_key_name": kms_key,
    }
    with dsl.If(parent_model != "", name="next-version"):
        following = ModelUploadOp(parent_model=registered.imported(parent_model), **given)
        following.set_display_name("register").set_caching_options(False)
    with dsl.Else(name="first-version"):
        first = ModelUploadOp(**given)
        first.set_display_name("register").set_caching_options(False)
    return dsl.OneOf(following.outputs["model"], first.outputs["model"])


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
    with dsl.If(comparison["is_registered"] == True, name="to-register"):  # noqa: E712 - this builds an expression
        with dsl.If(comparison["registered_version"] == "", name="not-registered"):
            checked = export(**model, model_name=values["model_name"], champion=comparison["champion"], **_HERE)
            exported = step(checked, settings.step_image).outputs
            uploaded = new_version(
                servable_model=servable(
                    exported["uri"], serving_image=values["serving_image"], own_image=settings.step_image
                ),
                parent_model=comparison["parent_model"],
                model_name=values["model_name"],
                labels=exported["labels"],
                aliases=comparison["aliases"],
                kms_key=values["kms_key"],
            )
        with dsl.Else(name="registered"):
            known = registered.imported(comparison["registered_version"])
        recorded = record(
            checkpoint_directory=checkpoint_directory,
            registered_model=dsl.OneOf(uploaded.output, known),
            metrics=evaluated["metrics"],
            confusion_matrix=evaluated["confusion_matrix"],
            is_promoted=comparison["is_promoted"],
            **_HERE,
            **inputs_of(record, values),
        )
        step(recorded, settings.step_image)
        with dsl.If(comparison["deploy_endpoint"] != "", name="asked-to-deploy"):
            deployed = deploy(
                **model,
                registered_version=recorded.output,
                predictions=evaluated["predictions"],
                **_HERE,
                **inputs_of(deploy, values),
            )
            step(deployed, settings.step_image)
