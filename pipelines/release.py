"""The end of the pipeline: what happens to a model that is accurate enough."""

from typing import Any

from google_cloud_pipeline_components.types.artifact_types import UnmanagedContainerModel, VertexModel
from google_cloud_pipeline_components.v1.model import ModelUploadOp
from kfp import dsl

from components.compare import compare
from components.export import export
from components.record import record
from pipelines import training
from pipelines.settings import Settings
from training_job.release.labels import ALIASES

_API = f"https://{training.LOCATION}-aiplatform.googleapis.com/v1/"
"""What is before a resource name in the URI of Google's artifacts."""


@dsl.pipeline(name="upload", description="Adds a version to the parent model, or makes the first one.")
def upload(
    servable: dsl.Input[UnmanagedContainerModel], parent_model: str, model_name: str, labels: dict[str, str], kms_key: str
) -> VertexModel:
    """Register the model: an optional artifact, such as the parent, needs two branches."""
    # What both have.
    given = {
        "display_name": model_name,
        "location": training.LOCATION,
        "unmanaged_container_model": servable,
        "version_aliases": list(ALIASES),
        "labels": labels,
        "encryption_spec_key_name": kms_key,
    }
    with dsl.If(parent_model != "", name="next-version"):
        parent = _imported(parent_model)
        following = ModelUploadOp(parent_model=parent, **given)
        following.set_display_name("register").set_caching_options(False)
    with dsl.Else(name="first-version"):
        first = ModelUploadOp(**given)
        first.set_display_name("register").set_caching_options(False)
    return dsl.OneOf(following.outputs["model"], first.outputs["model"])


def _imported(version: Any) -> Any:
    """Return a model of the registry as the artifact that Google's operations make of it."""
    return dsl.importer(
        artifact_uri=f"{_API}{version}", artifact_class=VertexModel, metadata={"resourceName": version}
    ).output
