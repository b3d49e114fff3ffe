"""Checkpoints: everything that a run needs to resume, committed by one last write, verified before use.

A checkpoint is a folder `step-<step>` with `variables.npz` and `manifest.json`. The former has the arrays v00000,
v00001, ... in the trainer's order and those of `extra`. The latter has the step, the best step, the
run's identity, size and SHA-256 of every file, and a seal over all of that. A folder without manifest does not count.
NumPy's format needs neither TensorFlow nor pickle.
"""

import contextlib
import dataclasses
import hashlib
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from exact_resume.checkpoints import manifest, result_file
from exact_resume.checkpoints.manifest import MANIFEST_FILE, TornCheckpoint, name
from exact_resume.errors import InputError
from exact_resume.files import publication, storage
from exact_resume.files.publication import UNFENCED, Fence

VARIABLES_FILE = "variables.npz"
_EXTRA = "extra."
"""Prefix for the names of the arrays in `Checkpoint.extra`."""
_OWN = re.compile(f"{re.escape(MANIFEST_FILE)}|{re.escape(VARIABLES_FILE)}")
Arrays = Sequence[npt.NDArray[Any]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Best:
    """The best step on the validation split so far; step 0: none yet."""

    step: int = 0
    accuracy: float | None = None
    loss: float | None = None
    score: float | None = None
    """Value of the run's metric; None if the metric is accuracy, which a manifest contains only once."""

    @property
    def value(self) -> float:
        """The value that selects the best step: the score, or the accuracy if there is no score."""
        return (self.accuracy or 0.0) if self.score is None else self.score

    def is_beaten_by(self, newer: "Best") -> bool:
        """Return whether a newer score is better; of equal values, the one with the lower loss is better."""
        return self.step == 0 or (newer.value, -(newer.loss or 0.0)) > (self.value, -(self.loss or 0.0))

    def to_dict(self) -> dict[str, int | float]:
        """Return the fields that are set, for the manifest."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """One checkpoint in memory."""

    step: int
    """Number of steps done when it was taken."""
    best: Best
    identity: dict[str, Any]
    """Everything that decides what the run computes."""
    run_id: str
    arrays: Arrays
    """Values of all variables, in the learner's order."""
    is_validated: bool = True
    """False if a stop interrupted the validation that was due at this step: a resumed run validates first."""
    validations: tuple[Best, ...] = ()
    """Scores of all validations so far, in order of their steps."""
    reason: str = ""
    """Why the run has ended with this step; empty if it has not, or if all steps are done."""
    state: Any = None
    """JSON of a program's objects, which counts their arrays; None where the order of the arrays is enough."""
    extra: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """State that only the trainer reads: name -> JSON value or array."""


def save(directory: str, checkpoint: Checkpoint, fence: Fence = UNFENCED) -> str:
    """Write a checkpoint; if an intact one of this step exists, only replace its manifest.

    Args:
        directory: Checkpoint folder.
        checkpoint: Content to write.
        fence: Refuses the commit if another process has replaced this one.

    Returns:
        The path of the checkpoint's folder.
    """
    final = storage.join(directory, name(checkpoint.step))
    if storage.names(final):
        try:
            load(directory, checkpoint.step)
            # The variables are the same; only the outcome of a validation that was due may be new.
            manifest.write(final, _manifest(checkpoint, manifest.read(directory, checkpoint.step)["files"]), fence)
            return final
        except TornCheckpoint:
            # Also the remains of a writer that died before its last write.
            fence.confirm()
            storage.remove_tree(final)
    data = _pack(checkpoint)
    with publication.committed_directory(final, last=MANIFEST_FILE, own=_OWN, fence=fence) as folder:
        (folder / VARIABLES_FILE).write_bytes(data)
        files = {VARIABLES_FILE: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}}
        manifest.write(folder, _manifest(checkpoint, files))
    return final


def _manifest(checkpoint: Checkpoint, files: dict[str, Any]) -> dict[str, Any]:
    return {
        "step": checkpoint.step,
        "best": checkpoint.best.to_dict() if checkpoint.best.step else None,
        "run_id": checkpoint.run_id,
        "identity": checkpoint.identity,
        "is_validated": checkpoint.is_validated,
        "validations": [score.to_dict() for score in checkpoint.validations],
        "reason": checkpoint.reason,
        **({"state": checkpoint.state} if checkpoint.state is not None else {}),
        "extra": {key: value for key, value in checkpoint.extra.items() if not isinstance(value, np.ndarray)},
        "files": files,
    }


def steps(directory: str) -> list[int]:
    """Return the steps of the committed checkpoints, newest first."""
    return sorted((step for step in _all_steps(directory) if _is_committed(directory, step)), reverse=True)


def load(directory: str, step: int) -> Checkpoint:
    """Read a checkpoint and verify every byte of it.

    Raises:
        TornCheckpoint: A file is missing, does not match its checksum, or is of another step.
        InputError: An earlier version wrote it.
        OSError: It cannot be read now; it may be intact.
    """
    content = manifest.read(directory, step)
    if "extra" not in content:
        raise manifest.of_earlier_version(step)
    try:
        expected = content["files"][VARIABLES_FILE]
        data = storage.read_bytes(storage.join(directory, name(step), VARIABLES_FILE))
        if len(data) != expected["bytes"]:
            raise TornCheckpoint(f"{VARIABLES_FILE} has {len(data)} bytes, the manifest lists {expected['bytes']}")
        if hashlib.sha256(data).hexdigest() != expected["sha256"]:
            raise TornCheckpoint(f"{VARIABLES_FILE} does not match the manifest's checksum")
        arrays, extra, arrays_step = _unpack(data)
        if arrays_step != step:
            raise TornCheckpoint(f"{VARIABLES_FILE} is of step {arrays_step}, not {step}")
        return Checkpoint(
            step=content["step"],
            best=Best(**(content["best"] or {})),
            identity=content["identity"],
            run_id=content["run_id"],
            arrays=arrays,
            is_validated=content["is_validated"],
            validations=tuple(Best(**score) for score in content["validations"]),
            reason=content["reason"],
            state=content.get("state"),
            extra=content["extra"] | extra,
        )
    except (KeyError, TypeError, *storage.MISSING) as error:
        raise TornCheckpoint(f"{type(error).__name__}: {error}") from error


def newest(directory: str) -> tuple[Checkpoint | None, list[str]]:
    """Return the newest intact checkpoint, and a line for each skipped one.

    A checkpoint is also skipped if its best checkpoint is lost: another best checkpoint would be another model.

    Raises:
        OSError: A checkpoint cannot be read now; it may be intact, so no older one may take its place.
    """
    skipped: list[str] = []
    for step in steps(directory):
        try:
            found = load(directory, step)
        except TornCheckpoint as error:
            skipped.append(f"{name(step)} is damaged and was skipped: {error}")
            continue
        if not (reason := _loss(directory, found.best)):
            return found, skipped
        skipped.append(f"{name(step)} was skipped: {name(found.best.step)}, its best so far, is lost: {reason}")
    return None, skipped


def best_kept(directory: str, best: Best, validations: Iterable[Best]) -> Best:
    """Return the best step if its checkpoint is intact, otherwise the best step with an intact checkpoint.

    Args:
        directory: Checkpoint folder.
        best: The best of all steps.
        validations: Scores of all validations, in order of their steps.
    """
    if not _loss(directory, best):
        return best
    kept = Best()
    for score in validations:
        if kept.is_beaten_by(score) and not _loss(directory, score):
            kept = score
    return kept


def _loss(directory: str, best: Best) -> str:
    """Return why the checkpoint of a best step is lost; empty if it is intact, or for step 0."""
    try:
        own = load(directory, best.step).best if best.step else best
    except TornCheckpoint as error:
        return str(error)
    # A run that resumed from an earlier step has trained this step again, perhaps not bit-identically.
    return "it has another score" if own.step == best.step and own != best else ""


def best(directory: str) -> Checkpoint:
    """Return the best checkpoint on the validation split, from `result.json` or from the newest checkpoint.

    Raises:
        InputError: There is no checkpoint, none was validated yet, or the best one is missing or damaged.
    """
    step = best_step(directory)
    try:
        return load(directory, step)
    except TornCheckpoint as error:
        raise InputError(
            f"best checkpoint {name(step)} in {directory!r} is damaged: {error}; run the training"
            " again, which resumes from an older intact checkpoint or from scratch"
        ) from error


def best_step(directory: str) -> int:
    """Return the step of the best checkpoint on the validation split.

    Raises:
        InputError: There is no checkpoint, or none was validated yet.
    """
    # The result is final: the loss of a newer checkpoint must not make another checkpoint the best.
    if (result := result_file.read_result(directory)) and isinstance(result.get("best_step"), int):
        return int(result["best_step"])
    last, skipped = newest(directory)
    if skipped and (last is None or not last.best.step):
        raise InputError(f"no validated checkpoint in {directory!r} is intact ({'; '.join(skipped)}); train again")
    if last is None:
        raise InputError(f"no checkpoint in {directory!r}; run the training first")
    if not last.best.step:
        raise InputError(f"no checkpoint in {directory!r} has been validated yet; let the training finish an epoch")
    return last.best.step


def needed_steps(directory: str, present: Sequence[int], best_step: int) -> set[int]:
    """Return the step of the best checkpoint and, if that is lost, the step from which the next start resumes.

    Args:
        directory: Checkpoint folder.
        present: Steps of the checkpoints there, newest first.
        best_step: Step of the best checkpoint; 0: none yet.
    """
    found = {best_step}
    for older in present:
        # The best checkpoint that an older checkpoint names may also be lost.
        if best_step not in present and older < best_step:
            best_step = _named_best_step(directory, older)
            found |= {older, best_step}
    return found


def _named_best_step(directory: str, step: int) -> int:
    try:
        best = manifest.read(directory, step)["best"]
    except TornCheckpoint:
        # Perhaps its removal failed, or another process is removing it.
        return 0
    return int(best["step"]) if best else 0


def prune(directory: str, *, keep: int, best_step: int) -> None:
    """Remove the remains of removals, and all but the newest `keep` checkpoints and those in `needed_steps`."""
    present = steps(directory)
    kept = {*present[:keep], *needed_steps(directory, present, best_step)}
    remove(directory, {step for step in _all_steps(directory) if step < max(kept)} - kept)


def remove(directory: str, unwanted: Iterable[int]) -> None:
    """Remove the checkpoints of some steps; they need not exist."""
    for step in unwanted:
        folder = storage.join(directory, name(step))
        # Manifest first: an interrupted removal then leaves a folder that does not count.
        with contextlib.suppress(FileNotFoundError):
            storage.remove(storage.join(folder, MANIFEST_FILE))
        storage.remove_tree(folder)


def digest(arrays: Arrays) -> str:
    """Return the SHA-256 of shapes, types and values, in order."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(f"{array.dtype.str}{array.shape}".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()


def _all_steps(directory: str) -> list[int]:
    matches = (re.fullmatch(r"step-(\d{9})", entry) for entry in storage.names(directory))
    return [int(match.group(1)) for match in matches if match]


def _is_committed(directory: str, step: int) -> bool:
    return storage.exists(storage.join(directory, name(step), MANIFEST_FILE))


def _pack(checkpoint: Checkpoint) -> bytes:
    buffer = io.BytesIO()
    named = {f"v{index:05d}": array for index, array in enumerate(checkpoint.arrays)}
    extra = {f"{_EXTRA}{key}": value for key, value in checkpoint.extra.items() if isinstance(value, np.ndarray)}
    np.savez(buffer, allow_pickle=False, **named, **extra, step=np.int64(checkpoint.step))
    return buffer.getvalue()


def _unpack(data: bytes) -> tuple[list[npt.NDArray[Any]], dict[str, npt.NDArray[Any]], int]:
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        extra = {name.removeprefix(_EXTRA): archive[name] for name in archive.files if name.startswith(_EXTRA)}
        names = sorted(name for name in archive.files if re.fullmatch(r"v\d+", name))
        return [archive[name] for name in names], extra, int(archive["step"])
