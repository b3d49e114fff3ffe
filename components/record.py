"""The `record` step: notes the registration, so that a run on the same data ends after `plan`."""

from kfp import dsl

from training_job.container_image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def record(
    checkpoint_directory: str, model_name: str, serving_image: str, registered_model: dsl.Input[dsl.Artifact]
) -> None:
    """Write the registration next to the checkpoints, where `plan` reads it.

    Args:
        checkpoint_directory: Folder with the checkpoints of the training job.
        model_name: Display name in the Model Registry.
        serving_image: Prediction container image of the registered model.
        registered_model: The registered model; its metadata has the resource name.
    """
    from trainer.checkpoints.outcome import note_registration

    note_registration(
        checkpoint_directory,
        model_name=model_name,
        serving_image=serving_image,
        resource_name=registered_model.metadata["resourceName"],
    )
