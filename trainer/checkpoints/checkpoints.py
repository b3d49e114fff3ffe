"""Checkpoints: everything that a run needs to resume, committed by one last write, verified before use.

A checkpoint is a folder `step-<step>` with `variables.npz` and `manifest.json`. The former has the arrays v00000,
v00001, ... in the learner's order and the digests of all batches so far. The latter has the step, the best step, the
run's identity, and size and SHA-256 of every file. A folder without manifest does not count. NumPy's format needs
neither TensorFlow nor pickle.
"""

import dataclasses
import hashlib
import io
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.checkpoints import identity
from trainer.files import storage
from userinput.errors import UserError

MANIFEST_FILE = "manifest.json"
VARIABLES_FILE = "variables.npz"
Arrays = Sequence[npt.NDArray[Any]]


class TornCheckpoint(Exception):
    """A checkpoint whose files do not agree with its manifest; the message names the difference."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Best:
    """The best step on the validation split so far; step 0: none yet."""

    step: int = 0
    accuracy: float = 0.0
    loss: float = float("inf")

    def is_beaten_by(self, accuracy: float, loss: float) -> bool:
        """Return whether a newer score is better: by accuracy, and for equal accuracy by loss."""
        return (accuracy, -loss) > (self.accuracy, -self.loss) or self.step == 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """One checkpoint in memory."""

    step: int
    """Number of steps done when it was taken."""
    best: Best
    identity: dict[str, Any]
    """What the run computes, from `trainer.checkpoints.identity.identity`."""
    run_id: str
    arrays: Arrays
    """Values of all variables, in the learner's order."""
    batch_digests: npt.NDArray[np.uint64] = dataclasses.field(default_factory=lambda: np.zeros(0, np.uint64))
    """uint64 [step]: digest of the global batch of each step so far, from `trainer.learner.batch_digest`. Empty if the
    order is not exact (parameter servers)."""
    is_validated: bool = True
    """False if a stop interrupted the validation that was due at this step: a resumed run validates first."""
    loss_scaling: dict[str, float] = dataclasses.field(default_factory=dict)
    """From `trainer.learner.learner.Learner.loss_scaling`."""


def name(step: int) -> str:
    """Return the folder name of the checkpoint of a step."""
    return f"step-{step:09d}"


def save(directory: str, checkpoint: Checkpoint) -> str:
    """Write a checkpoint; if an intact one of this step exists, only replace its manifest.

    Returns:
        The path of the checkpoint's folder.
    """
    final = storage.join(directory, name(checkpoint.step))
    if storage.names(final):
        try:
            load(directory, checkpoint.step)
            # The variables are the same; only the outcome of a validation that was due may be new.
            files = storage.read_json(storage.join(final, MANIFEST_FILE))["files"]
            storage.write_json(storage.join(final, MANIFEST_FILE), _manifest(checkpoint, files))
            return final
        except TornCheckpoint:
            # Also the remains of a writer that died before its last write.
            storage.remove_tree(final)
    data = _pack(checkpoint)
    with storage.committed_directory(final, last=MANIFEST_FILE) as folder:
        (folder / VARIABLES_FILE).write_bytes(data)
        files = {VARIABLES_FILE: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}}
        storage.write_json(folder / MANIFEST_FILE, _manifest(checkpoint, files))
    return final


def _manifest(checkpoint: Checkpoint, files: dict[str, Any]) -> dict[str, Any]:
    return {
        "step": checkpoint.step,
        "best": dataclasses.asdict(checkpoint.best) if checkpoint.best.step else None,
        "run_id": checkpoint.run_id,
        "identity": checkpoint.identity,
        "is_validated": checkpoint.is_validated,
        "loss_scaling": checkpoint.loss_scaling,
        "files": files,
    }


def steps(directory: str) -> list[int]:
    """Return the steps of the committed checkpoints, newest first."""
    matches = (re.fullmatch(r"step-(\d{9})", entry) for entry in storage.names(directory))
    found = [int(match.group(1)) for match in matches if match]
    return sorted((step for step in found if _is_committed(directory, step)), reverse=True)


def load(directory: str, step: int) -> Checkpoint:
    """Read a checkpoint and verify every byte of it.

    Raises:
        TornCheckpoint: A file is missing, or its size or checksum differs from the manifest's.
        OSError: The bucket cannot be read now; the checkpoint may be intact.
    """
    folder = storage.join(directory, name(step))
    manifest = storage.read_json(storage.join(folder, MANIFEST_FILE))
    if not isinstance(manifest, dict):
        raise TornCheckpoint(f"{MANIFEST_FILE} is missing or damaged")
    try:
        expected = manifest["files"][VARIABLES_FILE]
        data = storage.read_bytes(storage.join(folder, VARIABLES_FILE))
        if len(data) != expected["bytes"]:
            raise TornCheckpoint(f"{VARIABLES_FILE} has {len(data)} bytes, the manifest lists {expected['bytes']}")
        if hashlib.sha256(data).hexdigest() != expected["sha256"]:
            raise TornCheckpoint(f"{VARIABLES_FILE} does not match the manifest's checksum")
        arrays, batch_digests = _unpack(data)
        return Checkpoint(
            step=manifest["step"],
            best=Best(**(manifest["best"] or {})),
            identity=manifest["identity"],
            run_id=manifest["run_id"],
            arrays=arrays,
            batch_digests=batch_digests,
            is_validated=manifest["is_validated"],
            loss_scaling=manifest["loss_scaling"],
        )
    except (KeyError, TypeError, OSError) as error:
        if storage.is_remote(directory) and isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
            raise
        raise TornCheckpoint(f"{type(error).__name__}: {error}") from error


def newest(directory: str) -> tuple[Checkpoint | None, list[str]]:
    """Return the newest intact checkpoint, and a line for each newer one that was skipped.

    The best checkpoint that it names must be intact, too, because a run that resumes after it cannot make it again.
    """
    skipped: list[str] = []
    for step in steps(directory):
        read = step
        try:
            found = load(directory, read)
            if found.best.step not in (0, step):
                load(directory, read := found.best.step)
            return found, skipped
        except TornCheckpoint as error:
            reason = "is damaged" if read == step else f"names {name(read)} as best, which is damaged,"
            skipped.append(f"{name(step)} {reason} and was skipped: {error}")
    return None, skipped


def best(directory: str) -> Checkpoint:
    """Return the best checkpoint on the validation split, from `result.json` or from the newest checkpoint.

    Raises:
        UserError: There is no checkpoint, none was validated yet, or the best one is missing or damaged.
    """
    step = best_step(directory)
    try:
        return load(directory, step)
    except TornCheckpoint as error:
        raise UserError(
            f"best checkpoint {name(step)} in {directory!r} is damaged: {error}; train again"
            " (`python -m trainer.task`), which resumes from an older intact checkpoint or from scratch"
        ) from error


def best_step(directory: str) -> int:
    """Return the step of the best checkpoint on the validation split.

    Raises:
        UserError: There is no checkpoint, or none was validated yet.
    """
    # The result is final: the loss of a newer checkpoint must not make another one the best.
    if (result := identity.read_result(directory)) and isinstance(result.get("best_step"), int):
        return int(result["best_step"])
    last, skipped = newest(directory)
    if last is None and skipped:
        raise UserError(f"no checkpoint in {directory!r} is intact ({'; '.join(skipped)}); train again")
    if last is None:
        raise UserError(f"no checkpoint in {directory!r}; train first (`python -m trainer.task`)")
    if not last.best.step:
        raise UserError(f"no checkpoint in {directory!r} has been validated yet; let the training finish an epoch")
    return last.best.step


def refuse_other_run(found: dict[str, Any], wanted: dict[str, Any], directory: str) -> None:
    """Refuse the result of another configuration.

    Raises:
        UserError: A field differs; the message has the first few with both values.
    """
    differing = [key for key in sorted({*found, *wanted}) if found.get(key) != wanted.get(key)]
    if differing:
        named = ", ".join(f"{key} is {found.get(key)!r} there and {wanted.get(key)!r} here" for key in differing[:3])
        raise UserError(f"{directory!r} contains another run: {named}; give another --checkpoint-directory")


def prune(directory: str, *, keep: int, best_step: int) -> None:
    """Remove all but the newest `keep` checkpoints and the best one."""
    for step in steps(directory)[keep:]:
        if step != best_step:
            _remove(directory, step)


def remove_newer(directory: str, step: int) -> None:
    """Remove the checkpoints after a step, so that those that were skipped never count as the newest again."""
    for newer in steps(directory):
        if newer > step:
            _remove(directory, newer)


def _remove(directory: str, step: int) -> None:
    folder = storage.join(directory, name(step))
    # Manifest first: an interrupted removal then leaves a folder that does not count.
    storage.remove(storage.join(folder, MANIFEST_FILE))
    storage.remove_tree(folder)


def digest(arrays: Arrays) -> str:
    """Return the SHA-256 of shapes, types and values, in order."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(f"{array.dtype.str}{array.shape}".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def _is_committed(directory: str, step: int) -> bool:
    return storage.exists(storage.join(directory, name(step), MANIFEST_FILE))


def _pack(checkpoint: Checkpoint) -> bytes:
    buffer = io.BytesIO()
    named = {f"v{index:05d}": array for index, array in enumerate(checkpoint.arrays)}
    np.savez(buffer, allow_pickle=False, batch_digests=checkpoint.batch_digests, **named)
    return buffer.getvalue()


def _unpack(data: bytes) -> tuple[list[npt.NDArray[Any]], npt.NDArray[np.uint64]]:
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        names = sorted(name for name in archive.files if name != "batch_digests")
        return [archive[name] for name in names], archive["batch_digests"]
