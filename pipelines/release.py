"""Release steps of the pipeline, for a model that reaches the minimum score."""

from collections.abc import Mapping
from typing import Any

from google_cloud_pipeline_components.v1.model import ModelUploadOp
from kfp import dsl

from components.compare.compare import compare
from components.export.export import export
from components.release.deploy import deploy
from components.release.record import record
from pipelines import training
from pipelines.settings import Settings
from pipelines.steps import step, with_gpus

_HERE = {"region": training.LOCATION, "pipeline_root": dsl.PIPELINE_ROOT_PLACEHOLDER}


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

    def complete(**version: Any) -> None:
        recorded = record(
            checkpoint_directory=checkpoint_directory,
            metrics=evaluated["metrics"],
            confusion_matrix=evaluated["confusion_matrix"],
            is_promoted=comparison["is_promoted"],
            **version,
            **_HERE,
            **_own(record, parameters),
        )
        step(recorded, settings.step_image).set_display_name("record")
        with dsl.If(comparison["deploy_endpoint"] != "", name="asked-to-deploy"):
            deployed = deploy(
                **model,
                registered_version=recorded.output,
                predictions=evaluated["predictions"],
                **_HERE,
                **_own(deploy, parameters),
            )
            step(deployed, settings.step_image).set_display_name("deploy")

    with dsl.If(comparison["next"] == "export", name="new-version"):
        exported = step(
            export(
                **model,
                champion=comparison["champion"],
                own_image=settings.step_image,
                **_HERE,
                **_own(export, parameters),
            ),
            settings.step_image,
        ).outputs
        uploaded = ModelUploadOp(
            display_name=parameters["model_name"],
            location=training.LOCATION,
            # Its launcher takes one without a resource name for none.
            parent_model=exported["parent_model"],
            unmanaged_container_model=exported["servable"],
            version_aliases=comparison["aliases"],
            labels=exported["Output"],
            encryption_spec_key_name=parameters["kms_key"],
        )
        uploaded.set_display_name("register").set_caching_options(False)
        complete(registered_model=uploaded.outputs["model"])
    with dsl.If(comparison["next"] == "record", name="already-registered"):
        complete(registered_version=comparison["registered_version"])


def _own(component: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of the pipeline that a component has an input of the same name for."""
    return {name: value for name, value in parameters.items() if name in component.component_spec.inputs}
