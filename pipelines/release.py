"""Release steps of the pipeline, for a model that reaches the minimum score."""

from collections.abc import Mapping
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
from pipelines.steps import step, with_gpus

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
    checkpoint_directory: Any, dataset: Any, settings: Settings, *, evaluated: Any, parameters: Mapping[str, Any]
) -> None:
    """Add the steps from `compare` on.

    Args:
        checkpoint_directory: Of the run.
        dataset: The dataset written by `prepare`.
        settings: Of the compilation.
        evaluated: Outputs of `evaluate`.
        parameters: All parameters of the pipeline, by name.
    """
    model = {"checkpoint_directory": checkpoint_directory, "dataset": dataset}
    compared = step(
        compare(**model, own_image=settings.step_image, **_HERE, **_own(compare, parameters)), settings.image
    )
    with_gpus(compared, settings.steps)
    comparison = compared.outputs
    with dsl.If(comparison["is_registered"] == True, name="to-register"):  # noqa: E712 - this builds an expression
        with dsl.If(comparison["registered_version"] == "", name="not-registered"):
            checked = export(**model, model_name=parameters["model_name"], champion=comparison["champion"], **_HERE)
            exported = step(checked, settings.step_image).outputs
            uploaded = new_version(
                servable_model=servable(
                    exported["uri"], serving_image=parameters["serving_image"], own_image=settings.step_image
                ),
                parent_model=comparison["parent_model"],
                model_name=parameters["model_name"],
                labels=exported["labels"],
                aliases=comparison["aliases"],
                kms_key=parameters["kms_key"],
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
            **_own(record, parameters),
        )
        step(recorded, settings.step_image)
        with dsl.If(comparison["deploy_endpoint"] != "", name="asked-to-deploy"):
            deployed = deploy(
                **model,
                registered_version=recorded.output,
                predictions=evaluated["predictions"],
                **_HERE,
                **_own(deploy, parameters),
            )
            step(deployed, settings.step_image)


def _own(component: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of the pipeline that a component has an input of the same name for."""
    return {name: value for name, value in parameters.items() if name in component.component_spec.inputs}
