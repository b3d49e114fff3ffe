"""What `export` gives to the upload: the model's metadata, and the labels that the run finds its version by."""

from dataclasses import dataclass

from components.registry.registry import Registry
from components.release.registration import labels_at_upload
from localvertex_base.userinput.errors import UserError
from trainer.command_line import reported as reported  # a component imports `reported` from here
from trainer.export import export as export_model


@dataclass(frozen=True, kw_only=True)
class Exported:
    """The exported model."""

    metadata: dict[str, str | int | float]
    labels: dict[str, str]


def export(
    *,
    checkpoint_directory: str,
    dataset_directory: str,
    output_directory: str,
    model_name: str = "",
    champion: str = "",
    region: str = "",
    pipeline_root: str = "",
) -> Exported:
    """Export the model, see `trainer.export.export`, and check that it still replaces what it was compared with.

    Args:
        checkpoint_directory: Of the run.
        dataset_directory: The dataset that the run was trained on.
        output_directory: A new or empty folder, local or gs://.
        model_name: Display name in the Model Registry; empty if the model is not to be registered.
        champion: Version that the model replaces, as `compare` found it; empty for none.
        region: Region of the registry.
        pipeline_root: Folder or gs:// prefix of the run.

    Raises:
        UserError: The champion is another one by now, or see `trainer.export.export`.
    """
    metadata = export_model(
        checkpoint_directory=checkpoint_directory,
        dataset_directory=dataset_directory,
        output_directory=output_directory,
    )
    # As late as possible: another run may have registered a model since `compare`.
    if model_name:
        _check_champion(model_name, champion, Registry(region=region, pipeline_root=pipeline_root))
    return Exported(metadata=metadata, labels=labels_at_upload(checkpoint_directory))


def _check_champion(model_name: str, compared: str, registry: Registry) -> None:
    model = registry.find(model_name)
    found = registry.champion(model) if model else None
    current = found.name if found else ""
    if current != compared:
        raise UserError(
            f"the champion of {model_name!r} is {current or 'none'} now, but the model was compared with"
            f" {compared or 'none'}; run the pipeline again, which compares with the present one"
        )
