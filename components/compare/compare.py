"""The `compare` step: whether the new model replaces the champion, on images that neither has seen."""

from typing import NamedTuple

from kfp import dsl

from components.container_image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def compare(
    dataset: dsl.Input[dsl.Dataset],
    comparison: dsl.Output[dsl.HTML],
    metrics: dsl.Output[dsl.Metrics],
    checkpoint_directory: str,
    source: str,
    model_name: str,
    serving_image: str,
    region: str,
    pipeline_root: str,
    max_regression: float,
    must_improve: bool,
    min_compared_images: int,
    force_promotion: bool,
    deploy_endpoint: str,
) -> NamedTuple(  # type: ignore[valid-type]  # kfp takes the outputs from this call
    "Comparison",
    [
        ("next", str),
        ("is_promoted", bool),
        ("deploy_endpoint", str),
        ("registered_version", str),
        ("champion", str),
    ],
):
    """Compare the best checkpoint with the champion of the Model Registry; note the outcome next to the checkpoints.

    Args:
        dataset: The dataset written by `prepare`; the test split is used.
        comparison: Page with both models' results and the reason.
        metrics: Its figures.
        checkpoint_directory: Folder with the checkpoints of the training job.
        source: The source of the images; read again if the champion has another image size.
        model_name: Display name in the Model Registry.
        serving_image: Prediction container image to register the model with.
        region: Region of the Model Registry.
        pipeline_root: Folder or gs:// prefix of the run.
        max_regression: Largest accepted loss of test score (0 to 1) against the champion.
        must_improve: Replace the champion only by a significantly better model.
        min_compared_images: Fewest images that are enough for a comparison.
        force_promotion: Promote the model regardless of both comparisons.
        deploy_endpoint: Display name of the endpoint for a promoted model; empty for none.

    Returns:
        The next step (`export`, `record` or none), and whether the model is promoted, with its endpoint.
        The model's version if it is already registered, and the champion.
    """
    given = dict(locals())
    from components.compare.promotion import compare as compare_models, report_errors

    paths = {"dataset": dataset.path, "comparison": comparison.path}
    return report_errors(compare_models)(**given | paths | {"metrics": metrics.metadata})
