"""Starting weights from a finished run or an exported model, identified by their SHA-256.

A name such as run:ID is resolved once. From then on the configuration has the SHA-256 of the weights and their class
names. Their copy has the format of a checkpoint of step 0, so that the named run may be deleted. Needs no TensorFlow
for local paths.
"""

import dataclasses
import errno
import functools
from typing import Any

from exact_resume.checkpoints import checkpoints, manifest, result_file, seal
from exact_resume.checkpoints.checkpoints import Arrays, Best, Checkpoint
from exact_resume.checkpoints.manifest import TornCheckpoint
from exact_resume.files import storage
from localvertex._base.userinput.errors import UserError
from trainer.checkpoints import seen
from trainer.config import TrainConfig
from trainer.models import references

_START_FILE = "start.json"
_UNUSABLE = (TornCheckpoint, KeyError, TypeError)
"""Errors of a copy that is missing or damaged, or is another kind of checkpoint."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class StartingWeights:
    """The trained variables of a network, and their meaning."""

    model: str
    """Name of the network."""
    class_names: tuple[str, ...]
    arrays: Arrays
    """Values of all variables of the network, in order."""
    seen_images: seen.SeenImages | None
    """Images of training and validation of their source and of its ancestors; None: unknown."""

    @functools.cached_property
    def digest(self) -> str:
        """The value of `weights` in the configuration: sha256: and 64 hexadecimal digits."""
        return references.RESOLVED + seal.digest([list(self.class_names), checkpoints.digest(self.arrays)])


def of_run(directory: str) -> StartingWeights:
    """Return the weights of a finished run's best checkpoint.

    Raises:
        UserError: There is no finished run.
    """
    result = result_file.read_result(directory)
    if not result or not result_file.is_finished(directory):
        raise UserError(f"no finished run in {directory!r}; train it to its end first, or name another one")
    model = result["model"]
    best = checkpoints.best(directory)
    return StartingWeights(
        model=best.identity["model"],
        class_names=tuple(model["class_names"]),
        arrays=best.arrays[: model["num_variables"]],
        seen_images=seen.read(storage.join(directory, seen.FILE)),
    )


def pin(weights: StartingWeights, directory: str) -> None:
    """Copy weights into a folder; do nothing if they are there already."""
    # First, because weights in the folder count as complete.
    path = storage.join(directory, seen.FILE)
    known = [each for each in (weights.seen_images, seen.read(path)) if each is not None]
    if known:
        seen.write(path, seen.union(*known))
    try:
        if _read_pin(directory).digest == weights.digest:
            return
        # An intact checkpoint of other weights, which `save` would keep.
        storage.remove_tree(storage.join(directory, manifest.name(0)))
    except _UNUSABLE:
        pass
    content = {"model": weights.model, "class_names": list(weights.class_names), "weights": weights.digest}
    run_id = weights.digest.removeprefix(references.RESOLVED)[: manifest.RUN_ID_DIGITS]
    try:
        checkpoints.save(
            directory, Checkpoint(step=0, best=Best(), identity=content, run_id=run_id, arrays=weights.arrays)
        )
    except OSError as error:
        # Another plan may have copied the same weights in the meantime.
        if not isinstance(error, FileExistsError) and error.errno != errno.ENOTEMPTY:
            raise


def read(directory: str, expected: str) -> StartingWeights:
    """Return the weights in a folder: a copy from `pin`, or the checkpoint folder of a finished run.

    Args:
        directory: Local or gs://; empty: not known.
        expected: The digest that they must have.

    Raises:
        UserError: They are missing or damaged, or have another SHA-256; random weights must not take their place.
    """
    if not directory:
        raise UserError(f"--starting-weights is missing; give the folder with the weights {expected[:19]}...")
    try:
        found = of_run(directory) if result_file.read_result(directory) else _read_pin(directory)
    except _UNUSABLE as error:
        raise UserError(
            f"the starting weights {expected[:19]}... are not in {directory!r} ({error}), and no step has been trained;"
            " name the weights again, so that they are resolved again"
        ) from error
    if found.digest != expected:
        raise UserError(
            f"{directory!r} has the weights {found.digest[:19]}..., but this run starts from {expected[:19]}...;"
            " name the weights again, or give another --checkpoint-directory"
        )
    return found


def _read_pin(directory: str) -> StartingWeights:
    found = checkpoints.load(directory, 0)
    content = found.identity
    return StartingWeights(
        model=content["model"],
        class_names=tuple(content["class_names"]),
        arrays=found.arrays,
        seen_images=seen.read(storage.join(directory, seen.FILE)),
    )


def resolve(config: TrainConfig, folder: str, checkpoint_directory: str) -> tuple[TrainConfig, str]:
    """Resolve run:FOLDER for a training that was not planned, once for its checkpoint folder.

    Args:
        config: The configuration as given.
        folder: Value of --starting-weights.
        checkpoint_directory: Checkpoint folder of the training.

    Returns:
        The configuration with the SHA-256 of the weights, and the folder with the weights.

    Raises:
        UserError: There is no finished run in the folder, or only the step `plan` can look the weights up.
    """
    if config.weights.startswith(references.MODEL):
        raise UserError(
            f"weights={config.weights!r} is looked up by the pipeline's step plan only; give run:FOLDER with the"
            " checkpoint folder of a finished run"
        )
    if not config.weights.startswith(references.RUN):
        return config, folder
    source = config.weights.removeprefix(references.RUN).rstrip("/")
    # A resumed training needs the weights no more, so the run that they came from may be gone.
    noted = read_start(checkpoint_directory)
    digest = noted["weights"] if noted and noted.get("folder") == source else of_run(source).digest
    return dataclasses.replace(config, weights=digest), source


def note_start(checkpoint_directory: str, *, weights: str, folder: str, taken: str) -> None:
    """Record the weights that a training has started from, for its result."""
    content = seal.add_seal({"weights": weights, "folder": folder, "taken": taken})
    storage.write_json(storage.join(checkpoint_directory, _START_FILE), content)


def read_start(checkpoint_directory: str) -> dict[str, Any] | None:
    """Return what `note_start` wrote, or None."""
    content = storage.read_json(storage.join(checkpoint_directory, _START_FILE))
    is_usable = isinstance(content, dict) and seal.is_intact(content)
    return seal.without(content) if is_usable else None


def start_of(checkpoint_directory: str, run_identity: dict[str, Any]) -> dict[str, Any] | None:
    """Return the weights that a run has started from, or None.

    A start from other weights, of a run that was ended before its first checkpoint, is not this run's.
    """
    noted = read_start(checkpoint_directory)
    return noted if noted and noted.get("weights") == run_identity.get("weights") else None
