"""The `find-champion` step: the version that is in use, for Google's batch prediction."""

from typing import NamedTuple

from google_cloud_pipeline_components.types.artifact_types import VertexModel
from kfp import dsl

from components.container_image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def find_champion(
    model_name: str,
    region: str,
    pipeline_root: str,
    champion: dsl.Output[VertexModel],
) -> NamedTuple(  # type: ignore[valid-type]  # kfp takes the outputs from this call
    "Champion",
    [("version", str), ("image_size", int)],
):
    """Look up the champion in the Model Registry.

    Args:
        model_name: Display name of the model.
        region: Region of the Model Registry.
        pipeline_root: Folder or gs:// prefix of the run.
        champion: The version as Google's operations take it.

    Returns:
        Resource name of the version, and the size of its images in pixels.
    """
    from components.batch_prediction.champion import find, report_errors

    found = report_errors(find)(model_name=model_name, region=region, pipeline_root=pipeline_root)
    # The service may use an older champion's artifact that has the same URI.
    champion.uri = f"https://{region}-aiplatform.googleapis.com/v1/{found.version}"
    champion.metadata["resourceName"] = found.version
    return found
