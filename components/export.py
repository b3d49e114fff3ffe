"""Step `export`: the best checkpoint as a SavedModel that takes the bytes of a picture."""

from kfp import dsl

from training_job.image import PLACEHOLDER_IMAGE


@dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)
def export(checkpoint_directory: str, dataset: dsl.Input[dsl.Dataset], model: dsl.Output[dsl.Model]) -> str:
    """Write the SavedModel, load it again and compare it with the checkpoint before it counts.

    Args:
        checkpoint_directory: Where the training step left its checkpoints.
        dataset: The dataset made by `prepare`; its test pictures are the comparison.
        model: The SavedModel; its metadata says what was compared.

    Returns:
        URI of the SavedModel, for the registry.
    """
    from trainer.command_line import reported
    from trainer.export import export as export_model

    model.metadata.update(
        reported(export_model)(
            checkpoint_directory=checkpoint_directory, dataset_directory=dataset.path, output_directory=model.path
        )
    )
    return str(model.uri)
