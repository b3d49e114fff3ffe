"""The exported model with its serving container, as `ModelUploadOp` takes it: a part of the graph."""

from typing import Any

from google_cloud_pipeline_components.types.artifact_types import UnmanagedContainerModel
from kfp import dsl

from training_job.release import serving_container


def servable(uri: Any, *, serving_image: Any, own_image: str) -> Any:
    """Return the model with its container: this project's server if `serving_image` is empty.

    A container image of another project must not get this project's command, so one of two importers runs.

    Args:
        uri: Of the exported model.
        serving_image: The parameter of the pipeline.
        own_image: A container image of this project.
    """
    with dsl.If(serving_image == "", name="own-server"):
        own = _imported(uri, serving_container.own(own_image))
    with dsl.Else(name="other-server"):
        other = _imported(uri, serving_container.prebuilt(serving_image))
    return dsl.OneOf(own.output, other.output)


def _imported(uri: Any, container: dict[str, Any]) -> Any:
    return dsl.importer(artifact_uri=uri, artifact_class=UnmanagedContainerModel, metadata={"containerSpec": container})
