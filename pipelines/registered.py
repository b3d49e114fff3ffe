"""A model or version of the Model Registry as the artifact of Google's operations: a part of the graph."""

from typing import Any

from google_cloud_pipeline_components.types.artifact_types import VertexModel
from kfp import dsl

from pipelines import training

_API = f"https://{training.LOCATION}-aiplatform.googleapis.com/v1/"
"""What precedes the resource name in the URI of Google's artifacts."""


@dsl.pipeline(name="model", description="A model or version of the registry, as the artifact of Google's operations.")
def model_artifact(resource_name: str, uri: str) -> VertexModel:
    """Import the model; kfp resolves the placeholders of a URI only where it is an input."""
    imported = dsl.importer(artifact_uri=uri, artifact_class=VertexModel, metadata={"resourceName": resource_name})
    return imported.output


def imported(resource_name: Any) -> Any:
    """Return the artifact of a model or version, given its resource name."""
    return model_artifact(resource_name=resource_name, uri=f"{_API}{resource_name}").output
