"""The `record` step: completes the registration of the model of any training code."""

from kfp import dsl

from components.container_image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def record(
    is_promoted: bool,
    checkpoint_directory: str,
    model_name: str,
    serving_image: str,
    region: str,
    pipeline_root: str,
    registered_version: str = "",
    registered_model: dsl.Input[dsl.Artifact] = None,
) -> str:
    """Check aliases and labels of the version, describe it by its metrics, and note it next to the checkpoints.

    Args:
        is_promoted: Whether the version becomes the champion.
        checkpoint_directory: Folder with result.json.
        model_name: Display name in the Model Registry.
        serving_image: Prediction container image of the registered model.
        region: Region of the Model Registry.
        pipeline_root: Folder or gs:// prefix of the run.
        registered_version: Resource name of a version that an earlier run has uploaded.
        registered_model: Otherwise the upload of this run; its metadata has the resource name.

    Returns:
        Resource name of the version, projects/P/locations/R/models/ID@NUMBER.
    """
    given = dict(locals())
    from components.any_code.releasing import record as record_version, report_errors

    return report_errors(record_version)(**given)
