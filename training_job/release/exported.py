"""What `export` gives to the upload: the model's metadata, and the labels that the run finds its version by."""

from dataclasses import dataclass

from trainer.command_line import reported as reported  # a component imports `reported` from here
from trainer.export import export as export_model
from training_job.release.registration import labels_at_upload


@dataclass(frozen=True, kw_only=True)
class Exported:
    """The exported model."""

    metadata: dict[str, str | int | float]
    labels: dict[str, str]


def export(*, checkpoint_directory: str, dataset_directory: str, output_directory: str) -> Exported:
    """Export the model, see `trainer.export.export`."""
    metadata = export_model(
        checkpoint_directory=checkpoint_directory,
        dataset_directory=dataset_directory,
        output_directory=output_directory,
    )
    return Exported(metadata=metadata, labels=labels_at_upload(checkpoint_directory))
