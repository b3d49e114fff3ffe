"""The `record` step: completes the registration, makes the version the champion, and notes it for the next run."""

from typing import NamedTuple

from kfp import dsl

from components.container_image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def record(
    metrics: dsl.Input[dsl.Metrics],
    confusion_matrix: dsl.Input[dsl.ClassificationMetrics],
    dataset: dsl.Input[dsl.Dataset],
    decision: dsl.Output[dsl.Artifact],
    is_promoted: bool,
    champion: str,
    checkpoint_directory: str,
    source: str,
    max_regression: float,
    must_improve: bool,
    min_compared_images: int,
    force_promotion: bool,
    model_name: str,
    serving_image: str,
    region: str,
    pipeline_root: str,
    deploy_endpoint: str,
    registered_version: str = "",
    registered_model: dsl.Input[dsl.Artifact] = None,
) -> NamedTuple(  # type: ignore[valid-type]  # kfp takes the outputs from this call
    "Recorded",
    [("registered_version", str), ("is_promoted", bool), ("deploy_endpoint", str)],
):
    """Give the version labels, evaluation and aliases; compare it again if another run has promoted a model meanwhile.

    Args:
        metrics: Accuracy, loss and the number of examples, from `evaluate`.
        confusion_matrix: Rows are true classes, columns are predicted classes.
        dataset: The dataset written by `prepare`, for a comparison.
        decision: Its metadata has the reason.
        is_promoted: Whether the version is to become the champion.
        champion: Version that it was compared with; empty for none.
        checkpoint_directory: Folder with the checkpoints of the training job, where `plan` reads the note.
        source: The source of the images; read again if another champion has another image size.
        max_regression: Largest accepted loss of test score (0 to 1) against the champion.
        must_improve: Replace the champion only by a significantly better model.
        min_compared_images: Fewest images that are enough for a comparison.
        force_promotion: Promote the model regardless of the comparison.
        model_name: Display name in the Model Registry.
        serving_image: Prediction container image of the registered model; empty for this project's own server.
        region: Region of the Model Registry.
        pipeline_root: Folder or gs:// prefix of the run.
        deploy_endpoint: Display name of the endpoint for a promoted model; empty for none.
        registered_version: Resource name of a version that an earlier run has uploaded.
        registered_model: Otherwise the upload of this run; its metadata has the resource name.

    Returns:
        Resource name (projects/P/locations/R/models/ID@NUMBER), whether the version is the champion, and its endpoint.
    """
    given = dict(locals())
    from components.release.registration import record as record_version, report_errors

    made = {"metrics": metrics.metadata, "confusion_matrix": confusion_matrix.metadata, "decision": decision.metadata}
    return report_errors(record_version)(**given | made | {"dataset": dataset.path})
