"""The `export` step: the best checkpoint as a SavedModel that accepts encoded image files."""

from google_cloud_pipeline_components.types.artifact_types import UnmanagedContainerModel, VertexModel
from kfp import dsl

from components.container_image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def export(
    checkpoint_directory: str,
    dataset: dsl.Input[dsl.Dataset],
    model: dsl.Output[dsl.Model],
    servable: dsl.Output[UnmanagedContainerModel],
    parent_model: dsl.Output[VertexModel],
    model_name: str = "",
    region: str = "",
    pipeline_root: str = "",
    serving_image: str = "",
    own_image: str = "",
) -> dict:  # type: ignore[type-arg]  # kfp knows no other
    """Write the SavedModel, load it again and compare its predictions with the checkpoint's.

    Args:
        checkpoint_directory: Folder with the checkpoints of the training job.
        dataset: The dataset written by `prepare`; the comparison uses its test images.
        model: The SavedModel; its metadata has the results of the comparison.
        servable: The SavedModel with the container that serves it, as `ModelUploadOp` takes it.
        parent_model: The model to add a version to; without a resource name the version becomes its model's first.
        model_name: Display name in the Model Registry; empty if the model is not to be registered.
        region: Region of the Model Registry.
        pipeline_root: Folder or gs:// prefix of the run.
        serving_image: Prediction container image with its own server; empty for `own_image`.
        own_image: The container image of this project's own server.

    Returns:
        The labels of the version, for the Model Registry.
    """
    given = dict(locals())
    from components.export.exported import export as export_model, report_errors

    exported = report_errors(export_model)(**given | {"dataset": dataset.path, "model": model.path})
    model.metadata.update(exported.metadata)
    servable.uri, servable.metadata["containerSpec"] = model.uri, exported.container
    parent_model.uri = f"https://{region}-aiplatform.googleapis.com/v1/{exported.parent_model}"
    parent_model.metadata["resourceName"] = exported.parent_model
    return exported.labels
