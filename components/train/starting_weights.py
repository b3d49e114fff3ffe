"""Resolves `weights=run:ID` and `weights=model:NAME@ALIAS` once, in the step `plan`, and copies the weights."""

import dataclasses

from components.registry.registry import Registry
from exact_resume.errors import InputError
from exact_resume.files import storage
from localvertex._base.userinput.errors import UserError
from trainer import command_line
from trainer.checkpoints import starting_weights
from trainer.checkpoints.starting_weights import StartingWeights
from trainer.config import TrainConfig
from trainer.data.dataset import Dataset
from trainer.learner import libraries
from trainer.models import references


@dataclasses.dataclass(frozen=True, kw_only=True)
class Start:
    """Inputs that a training starts from, besides its configuration."""

    flags: tuple[str, ...] = ()
    """Flags of the trainer."""
    description: str = ""
    """Source of the weights to start from; empty: the configuration names none."""


def resolve(config: TrainConfig, data: Dataset, *, training: str, region: str) -> tuple[TrainConfig, Start]:
    """Resolve a reference to weights, check that they fit, and copy them, so that their source may be deleted.

    Args:
        config: The user's configuration.
        data: The dataset of the training.
        training: Folder or gs:// prefix with the folders of all runs.
        region: Region of the Model Registry.

    Returns:
        The configuration with the SHA-256 of the weights instead of the reference, and what the trainer needs.

    Raises:
        UserError: The weights are not found, or do not fit the network.
    """
    if not references.is_reference(config.weights):
        return config, Start()
    command_line.set_environment()
    weights, folder = _find(config.weights, training=training, region=region)
    if weights.model != config.model:
        raise UserError(
            f"weights={config.weights!r} belong to the network {weights.model}, but model is {config.model}; start"
            " from weights of the same network"
        )
    libraries.load()
    from trainer.learner import class_rows
    from trainer.models import models

    name, size, classes = config.model, data.image_size, data.class_names
    network = models.build(name, image_size=size, num_classes=len(classes))
    try:
        class_rows.fit(weights.arrays, weights.class_names, network.variables, classes, name=name, image_size=size)
    except UserError as error:
        raise UserError(f"weights={config.weights!r} do not fit: {error}") from error
    starting_weights.pin(weights, folder)
    description = f"{config.weights} is {weights.digest}: {class_rows.describe(weights.class_names, classes)}"
    resolved = dataclasses.replace(config, weights=weights.digest)
    return resolved, Start(flags=(f"--starting-weights={folder}",), description=description)


def _find(reference: str, *, training: str, region: str) -> tuple[StartingWeights, str]:
    """Return the weights and the folder for their copy."""
    copies = storage.join(training, "weights")
    if reference.startswith(references.RESOLVED):
        folder = _copy(copies, reference)
        return starting_weights.read(folder, reference), folder
    if reference.startswith(references.RUN):
        weights = _of_run(reference.removeprefix(references.RUN), training)
    else:
        weights = _of_model(reference.removeprefix(references.MODEL), training, region)
    return weights, _copy(copies, weights.digest)


def _of_run(run_id: str, training: str) -> StartingWeights:
    if not run_id.isalnum():
        raise UserError(
            f"weights='run:{run_id}' names no training run; use the name of a folder in {training}, "
            "e.g. run:0123456789abcdef"
        )
    try:
        return starting_weights.of_run(storage.join(training, run_id, "checkpoints"))
    except (UserError, InputError) as error:
        copied = "for weights that an earlier plan has copied, give their sha256:... from its report"
        raise UserError(f"weights='run:{run_id}': {error}; {copied}") from error


def _of_model(text: str, training: str, region: str) -> StartingWeights:
    libraries.load()
    from trainer.results import saved_model

    name, _, version = text.rpartition("@")
    root = training.rpartition("/")[0]
    return saved_model.starting_weights(Registry(region=region, pipeline_root=root).version(name, version).artifact_uri)


def _copy(copies: str, digest: str) -> str:
    return storage.join(copies, digest.removeprefix(references.RESOLVED)[:32])
