"""The `containerSpec` of a registered model: how Vertex AI, or a local endpoint, starts its prediction server."""

from typing import Any

_PORT = 8080
_HEALTH_ROUTE = "/health"
_PREDICT_ROUTE = "/predict"


def own(image: str) -> dict[str, Any]:
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


def prebuilt(image: Any) -> dict[str, Any]:
    """Return the specification of an image that has its own server, such as Google's or TensorFlow Serving.

    Args:
        image: Its name, or a parameter of a pipeline.
    """
    return {"imageUri": image}
