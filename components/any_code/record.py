"""The `record` step: completes the registration of the model of any training code."""

from typing import NamedTuple

from kfp import dsl

from components.container_image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def record(
    decision: dsl.Output[dsl.Artifact],
    is_promoted: bool,
    champion: str,
    checkpoint_directory: str,
    metric: str,
    direction: str,
    must_improve: bool,
    min_compared_images: int,
    model_name: str,
    serving_image: str,
    region: str,
    pipeline_root: str,
    deploy_endpoint: str,
    force_promotion: bool = False,
    registered_version: str = "",
    registered_model: dsl.Input[dsl.Artifact] = None,
) -> NamedTuple(  # type: ignore[valid-type]  # kfp takes the outputs from this call
    "Recorded",
    [("registered_version", str), ("is_promoted", bool), ("deploy_endpoint", str)],
):
    """Give the version labels, metrics and aliases; compare it again if another run has promoted a model meanwhile.

    Args:
        decision: Its metadata has the reason.
        is_promoted: Whether the version is to become the champion.
        champion: Version that it was compared with; empty for none.
        checkpoint_directory: Folder with result.json.
        metric: Name of the metric.
        direction: `maximize` or `minimize`; empty for that of a known metric.
        must_improve: Replace the champion only by a significantly better model, if both have predictions with ids.
        min_compared_images: Fewest examples in common that allow such a comparison.
        model_name: Display name in the Model Registry.
        serving_image: Prediction container image of the registered model.
        region: Region of the Model Registry.
        pipeline_root: Folder or gs:// prefix of the run.
        deploy_endpoint: Display name of the endpoint for a promoted model; empty for none.
        force_promotion: Promote the model regardless of the comparison.
        registered_version: Resource name of a version that an earlier run has uploaded.
        registered_model: Otherwise the upload of this run; its metadata has the resource name.

    Returns:
        Resource name (projects/P/locations/R/models/ID@NUMBER), whether the version is the champion, and its endpoint.
    """
    given = dict(locals())
    from components.any_code.releasing import record as record_version, report_errors

    return report_errors(record_version)(**given | {"decision": decision.metadata})
