"""Outputs of `export` for the upload: the model's metadata, labels and serving container, and the parent model."""

from dataclasses import dataclass
from typing import Any

from components.registry.registry import Registry
from components.release.registration import labels_at_upload
from localvertex._base.usage import PREDICT
from trainer.command_line import report_errors as report_errors  # a component imports it from here
from trainer.export import export as export_model


@dataclass(frozen=True, kw_only=True)
class Exported:
    """The exported model."""

    metadata: dict[str, str | int | float]
    labels: dict[str, str]
    """Labels that the run finds its version by."""
    container: dict[str, Any]
    """The `containerSpec`: how Vertex AI, or a local endpoint, starts the prediction server."""
    parent_model: str
    """Resource name of the model that the new one becomes a version of; empty: it becomes the first."""


def export(
    *,
    checkpoint_directory: str,
    dataset: str,
    model: str,
    model_name: str = "",
    region: str = "",
    pipeline_root: str = "",
    serving_image: str = "",
    own_image: str = "",
    **_: Any,
) -> Exported:
    """Export the model, see `trainer.export.export`.

    Args:
        checkpoint_directory: Checkpoint folder of the run.
        dataset: The dataset that the run was trained on.
        model: A new or empty folder, local or gs://.
        model_name: Display name in the Model Registry; empty if the model is not to be registered.
        region: Region of the registry.
        pipeline_root: Folder or gs:// prefix of the run.
        serving_image: Prediction container image with its own server; empty for `own_image`.
        own_image: The container image of this project's own server.
        **_: The artifacts of the component.

    Raises:
        UserError: See `trainer.export.export`.
    """
    metadata = export_model(
        checkpoint_directory=checkpoint_directory,
        dataset_directory=dataset,
        output_directory=model,
    )
    return Exported(
        # Where the pipeline runs locally, it ends with this command.
        metadata=metadata | {"usage": f"Predict: {PREDICT}"},
        labels=labels_at_upload(checkpoint_directory),
        container={"imageUri": serving_image} if serving_image else own_container(own_image),
        parent_model=Registry(region=region, pipeline_root=pipeline_root).find(model_name) if model_name else "",
    )


def own_container(image: str) -> dict[str, Any]:
    """Return the `containerSpec` of this project's server, `python -m trainer.serve`.

    Vertex AI gives it the model's folder as AIP_STORAGE_URI, and the port and the routes as AIP_* variables. A
    container image of another project must not get this command.

    Args:
        image: A container image of this project, for CPUs or for GPUs.
    """
    return {
        "imageUri": image,
        # The image has another command.
        "command": ["python", "-m", "trainer.serve"],
        "args": [],
        "ports": [{"containerPort": 8080}],
        "healthRoute": "/health",
        "predictRoute": "/predict",
    }
