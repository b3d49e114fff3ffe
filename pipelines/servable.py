"""The exported model with its serving container, as `ModelUploadOp` takes it: a part of the graph.

A `containerSpec` is how Vertex AI, or a local endpoint, starts the prediction server of a registered model.
"""

from typing import Any

from google_cloud_pipeline_components.types.artifact_types import UnmanagedContainerModel
from kfp import dsl

_PORT = 8080
_HEALTH_ROUTE = "/health"
_PREDICT_ROUTE = "/predict"


def servable(uri: Any, *, serving_image: str, own_image: str) -> Any:
    """Return the model with its container: this project's server if `serving_image` is empty.

    A container image of another project must not get this project's command.

    Args:
        uri: Of the exported model.
        serving_image: Name of an image with its own server, such as Google's or TensorFlow Serving; or empty.
        own_image: A container image of this project.
    """
    container = {"imageUri": serving_image} if serving_image else own_container(own_image)
    return dsl.importer(
        artifact_uri=uri, artifact_class=UnmanagedContainerModel, metadata={"containerSpec": container}
    ).output


def own_container(image: str) -> dict[str, Any]:
    """Return the specification of this project's server, `python -m trainer.serve`.

    Vertex AI gives it the model's folder as AIP_STORAGE_URI, and the port and the routes as AIP_* variables.

    Args:
        image: A container image of this project, for CPUs or for GPUs.
    """
    return {
        "imageUri": image,
        # The entry point of the image for CPUs is Beam's.
        "command": ["python", "-m", "trainer.serve"],
        "args": [],
        "ports": [{"containerPort": _PORT}],
        "healthRoute": _HEALTH_ROUTE,
        "predictRoute": _PREDICT_ROUTE,
    }
