"""The `export` step: the model that the training code wrote, as `ModelUploadOp` takes it."""

from google_cloud_pipeline_components.types.artifact_types import UnmanagedContainerModel, VertexModel
from kfp import dsl

from components.container_image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def export(
    servable: dsl.Output[UnmanagedContainerModel],
    parent_model: dsl.Output[VertexModel],
    checkpoint_directory: str,
    base_output_directory: str,
    labels: dict,  # type: ignore[type-arg]  # kfp knows no other
    serving_image: str,
    model_name: str,
    region: str,
    pipeline_root: str,
) -> dict:  # type: ignore[type-arg]
    """Put the metrics and predictions beside the model, for later comparisons.

    Args:
        servable: The model with the container that serves it.
        parent_model: The model to add a version to; without a resource name the version becomes its model's first.
        checkpoint_directory: Folder with result.json.
        base_output_directory: Folder of the run, with the model in `model/`.
        labels: Labels of the user.
        serving_image: Prediction container image with its own server.
        model_name: Display name in the Model Registry.
        region: Region of the Model Registry.
        pipeline_root: Folder or gs:// prefix of the run.

    Returns:
        The labels of the version, for the Model Registry.
    """
    given = dict(locals())
    from components.any_code.releasing import export as export_model, report_errors

    exported = report_errors(export_model)(**given)
    servable.uri, servable.metadata["containerSpec"] = exported.metadata["uri"], exported.container
    parent_model.uri = f"https://{region}-aiplatform.googleapis.com/v1/{exported.parent_model}"
    parent_model.metadata["resourceName"] = exported.parent_model
    return exported.labels
