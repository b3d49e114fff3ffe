"""The `record` step: completes the registration, and notes it, so that a run on the same data ends after `plan`."""

from kfp import dsl

from components.container_image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def record(
    metrics: dsl.Input[dsl.Metrics],
    confusion_matrix: dsl.Input[dsl.ClassificationMetrics],
    is_promoted: bool,
    checkpoint_directory: str,
    model_name: str,
    serving_image: str,
    region: str,
    pipeline_root: str,
    registered_version: str = "",
    registered_model: dsl.Input[dsl.Artifact] = None,
) -> str:
    """Check aliases and labels of the version, give it its evaluation, and note it next to the checkpoints.

    Args:
        metrics: Accuracy, loss and the number of examples, from `evaluate`.
        confusion_matrix: Rows are true classes, columns are predicted classes.
        is_promoted: Whether the version becomes the champion.
        checkpoint_directory: Folder with the checkpoints of the training job, where `plan` reads the note.
        model_name: Display name in the Model Registry.
        serving_image: Prediction container image of the registered model; empty for this project's own server.
        region: Region of the Model Registry.
        pipeline_root: Folder or gs:// prefix of the run.
        registered_version: Resource name of a version that an earlier run has uploaded.
        registered_model: Otherwise the upload of this run; its metadata has the resource name.

    Returns:
        Resource name of the version, projects/P/locations/R/models/ID@NUMBER.
    """
    from components.release.registration import record as record_version, report_errors

    return report_errors(record_version)(
        resource_name=registered_version or registered_model.metadata["resourceName"],
        metrics=metrics.metadata,
        confusion_matrix=confusion_matrix.metadata,
        is_promoted=is_promoted,
        checkpoint_directory=checkpoint_directory,
        model_name=model_name,
        serving_image=serving_image,
        region=region,
        pipeline_root=pipeline_root,
    )
