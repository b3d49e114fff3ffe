"""The `compare` step: whether the model of any training code replaces the champion."""

from typing import NamedTuple

from kfp import dsl

from components.container_image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def compare(
    comparison: dsl.Output[dsl.HTML],
    metrics: dsl.Output[dsl.Metrics],
    checkpoint_directory: str,
    base_output_directory: str,
    run_id: str,
    inputs_sha256: str,
    metric: str,
    direction: str,
    minimum_metric: str,
    must_improve: bool,
    min_compared_images: int,
    force_promotion: bool,
    model_name: str,
    serving_image: str,
    region: str,
    pipeline_root: str,
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
    """Note that the training has succeeded, and compare its model by the metric, or by predictions with ids.

    Args:
        comparison: Page with the decision and its reason.
        metrics: The metrics of the model.
        checkpoint_directory: Folder with result.json, and predictions.jsonl if the code wrote it.
        base_output_directory: Folder of the run, with the model in `model/`.
        run_id: Id of the run.
        inputs_sha256: Digest of the inputs of the run.
        metric: Name of the metric.
        direction: `maximize` or `minimize`; empty for that of a known metric.
        minimum_metric: The worst accepted value; empty for any.
        must_improve: Replace the champion only by a significantly better model, if both have predictions with ids.
        min_compared_images: Fewest examples in common that allow such a comparison.
        force_promotion: Promote the model regardless of both comparisons.
        model_name: Display name in the Model Registry; empty for no registration.
        serving_image: Prediction container image to register the model with.
        region: Region of the Model Registry.
        pipeline_root: Folder or gs:// prefix of the run.
        deploy_endpoint: Display name of the endpoint for a promoted model; empty for none.

    Returns:
        The next step (`export`, `record` or none), and whether the model is promoted, with its endpoint.
        The model's version if it is already registered, and the champion.
    """
    given = dict(locals())
    from components.any_code.judging import compare as compare_models, report_errors

    return report_errors(compare_models)(**given | {"comparison": comparison.path, "metrics": metrics.metadata})
