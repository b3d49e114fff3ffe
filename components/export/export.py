"""The `export` step: the best checkpoint as a SavedModel that accepts encoded image files."""

from typing import NamedTuple

from kfp import dsl

from components.container_image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def export(
    checkpoint_directory: str,
    dataset: dsl.Input[dsl.Dataset],
    model: dsl.Output[dsl.Model],
    model_name: str = "",
    champion: str = "",
    region: str = "",
    pipeline_root: str = "",
) -> NamedTuple(  # type: ignore[valid-type]  # kfp takes the outputs from this call
    "Exported", [("uri", str), ("labels", dict)]
):
    """Write the SavedModel, load it again and compare its predictions with the checkpoint's.

    Args:
        checkpoint_directory: Folder with the checkpoints of the training job.
        dataset: The dataset written by `prepare`; the comparison uses its test images.
        model: The SavedModel; its metadata has the results of the comparison.
        model_name: Display name in the Model Registry; empty if the model is not to be registered.
        champion: Version that the model replaces, as `compare` found it; empty for none.
        region: Region of the Model Registry.
        pipeline_root: Folder or gs:// prefix of the run.

    Returns:
        URI of the SavedModel, and the labels of its version, for the Model Registry.
    """
    from components.export.exported import export as export_model, reported

    exported = reported(export_model)(
        checkpoint_directory=checkpoint_directory,
        dataset_directory=dataset.path,
        output_directory=model.path,
        model_name=model_name,
        champion=champion,
        region=region,
        pipeline_root=pipeline_root,
    )
    model.metadata.update(exported.metadata)
    return str(model.uri), exported.labels
