"""Step `record`: writes down that the model is registered, so that a run on the same data has nothing left to do."""

from kfp import dsl

from training_job.image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def record(
    checkpoint_directory: str, model_name: str, serving_image: str, registered_model: dsl.Input[dsl.Artifact]
) -> None:
    """Leave a note beside the checkpoints; `plan` reads it.

    Args:
        checkpoint_directory: Where the training step left its checkpoints.
        model_name: Name in the Model Registry.
        serving_image: Prediction container the model is served with.
        registered_model: What the registry made of the model; its metadata has the resource name.
    """
    from trainer.checkpoints.outcome import note_registration

    note_registration(
        checkpoint_directory,
        model_name=model_name,
        serving_image=serving_image,
        resource_name=registered_model.metadata["resourceName"],
    )
