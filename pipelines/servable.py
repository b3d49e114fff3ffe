"""The exported model with its serving container, as `ModelUploadOp` takes it: a part of the graph.

A `containerSpec` is how Vertex AI, or a local endpoint, starts the prediction server of a registered model.
"""

from typing import Any

from google_cloud_pipeline_components.types.artifact_types import UnmanagedContainerModel
from kfp import dsl

_PORT = 8080
_HEALTH_ROUTE = "/health"
_PREDICT_ROUTE = "/predict"


def servable(uri: Any, *, serving_image: Any, own_image: str) -> Any:
    """Return the model with its container: this project's server if `serving_image` is empty.

    A container image of another project must not get this project's command, so one of two importers runs.

    Args:
        uri: Of the exported model.
        serving_image: The parameter of the pipeline.
        own_image: A container image of this project.
    """
    with dsl.If(serving_image == "", name="own-server"):
        own = _imported(uri, own_container(own_image))
    with dsl.Else(name="other-server"):
        other = _imported(uri, _prebuilt_container(serving_image))
    return dsl.OneOf(own.output, other.output)


def _imported(uri: Any, container: dict[str, Any]) -> Any:
    return dsl.importer(artifact_uri=uri, artifact_class=UnmanagedContainerModel, metadata={"containerSpec": container})


def own_container(image: str) -> dict[str, Any]:
    """Return the specification of this project's server, `python -m trainer.serve`.

    Vertex AI gives it the model's folder as AIP_STORAGE_URI, and the port and the routes as AIP_* variables.

    Args:
        image: A container image of this project, for CPUs or for GPUs.
    """
    return {
        "imageUri": image,
        # The image has another command.
        "command": ["python", "-m", "trainer.serve"],
        "args": [],
        "ports": [{"containerPort": _PORT}],
        "healthRoute": _HEALTH_ROUTE,
        "predictRoute": _PREDICT_ROUTE,
    }


def _prebuilt_container(image: Any) -> dict[str, Any]:
    """Return the specification of an image that has its own server, such as Google's or TensorFlow Serving.

    Args:
        image: Its name, or a parameter of a pipeline.
    """
    return {"imageUri": image}
