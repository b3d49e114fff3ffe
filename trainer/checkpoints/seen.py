"""The images that a model has seen in training and validation, or that a model it started from has seen.

Three files outlive the dataset. The first has the first 8 bytes of each image's SHA-256, as sorted big-endian numbers.
The second, beside it, has the 64 bytes of each image's perceptual hash: an image that was saved again has another
SHA-256. The third has their signatures with thumbnails (`trainer.data.preparing.quality.signatures`), which decide. It
stays with the checkpoints: an exported model may be public.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from exact_resume.checkpoints import checkpoints
from exact_resume.files import storage
from trainer.data.dataset import Dataset
from trainer.data.preparing import image_list
from trainer.data.preparing.quality import likeness, signatures

FILE = "seen_images"
"""File in a checkpoint folder, a folder with starting weights, and `assets.extra` of an exported model."""
SECOND = "_perceptual"
"""End of the second file's name."""
_THIRD = "_signatures"
Numbers = npt.NDArray[np.uint64]
Hashes = npt.NDArray[np.int8]
_DIGITS = 16
_STORED = np.dtype(">u8")
_HASH_BYTES = 64
_SAME = 0.9999
"""Correlation above which perceptual hashes are at distance 0."""
_CHUNK = 1024


@dataclasses.dataclass(frozen=True, kw_only=True)
class SeenImages:
    """The images that a model has seen."""

    numbers: Numbers
    """The beginnings of their SHA-256, sorted and each once."""
    hashes: Hashes
    """Perceptual hashes int8 [N, 64], sorted and each once."""
    described: signatures.Bytes = dataclasses.field(default_factory=lambda: signatures.unpacked([]))
    """Signatures uint8 [M, 968] of the images whose signature is known, sorted and without repetition."""

    def includes(self, lines: Sequence[Mapping[str, Any]]) -> npt.NDArray[np.bool_]:
        """Return for each line [N] of an image list whether its image, or a near-duplicate of it, was seen.

        Without its signature, an image was seen if its perceptual hash is at distance 0 from one.
        """
        found = np.isin(numbers(line["content_hash"] for line in lines), self.numbers)
        own = [signatures.signature_of(line) for line in lines]
        places = np.flatnonzero([bool(each) for each in own])
        both = np.concatenate([signatures.unpacked(own), self.described])
        pairs = likeness.find(both, np.arange(len(both)) < len(places), are_others_paired=False).pairs
        found[places[pairs[pairs[:, 1] >= len(places), 0]]] = True
        frequencies = _frequencies(_hashes_of(map(hash_of, lines)))
        described = {each.tobytes() for each in signatures.hashes(self.described)}
        left = _hashes_of(each for each in map(bytes, self.hashes) if each not in described)
        for start in range(0, len(left), _CHUNK):
            found |= (frequencies @ _frequencies(left[start : start + _CHUNK]).T > _SAME).any(axis=1)
        return found


def of_dataset(data: Dataset) -> SeenImages:
    """Return the images of the training and validation split.

    Validation counts, because it chooses the checkpoint.
    """
    return of_lines(line for line in image_list.read(data.directory) if line["split"] in ("train", "validation"))


def of_lines(lines: Iterable[Mapping[str, Any]]) -> SeenImages:
    """Return the images of lines of a dataset's image list; rejected ones are left out."""
    found = [
        (each["content_hash"], hash_of(each), signatures.signature_of(each)) for each in lines if "content_hash" in each
    ]
    return SeenImages(
        numbers=np.unique(numbers(content for content, *_ in found)),
        hashes=np.unique(_hashes_of(perceptual for _, perceptual, _ in found), axis=0),
        described=np.unique(signatures.unpacked(signature for *_, signature in found), axis=0),
    )


def hash_of(line: Mapping[str, Any]) -> bytes:
    """Return the perceptual hash in a line of an image list; zeros, which resemble no other, for a tiny image."""
    is_tiny = min(line["width"], line["height"]) < signatures.MIN_PIXELS
    return bytes(_HASH_BYTES) if is_tiny else bytes.fromhex(line["perceptual_hash"])


def pixels_of(line: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the identity of the prepared pixels in a line of an image list, whatever their bytes."""
    return *line["pixel_sums"], *line["pixel_sums_of_squares"], line["perceptual_hash"]


def _hashes_of(found: Iterable[bytes]) -> Hashes:
    """Return perceptual hashes as int8 [N, 64]."""
    return np.frombuffer(b"".join(found), np.int8).reshape(-1, _HASH_BYTES)


def numbers(content_hashes: Iterable[str]) -> Numbers:
    """Return the number of each SHA-256 digest in hexadecimal, in their order."""
    return np.array([int(each[:_DIGITS], 16) for each in content_hashes], np.uint64)


def union(*several: SeenImages) -> SeenImages:
    """Return the images of several sets."""
    return SeenImages(
        numbers=np.unique(np.concatenate([each.numbers for each in several])),
        hashes=np.unique(np.concatenate([each.hashes for each in several]), axis=0),
        described=np.unique(np.concatenate([each.described for each in several]), axis=0),
    )


def write(path: storage.Path, images: SeenImages, *, is_public: bool = False) -> None:
    """Write the files; not the third one if the folder may be public."""
    if not is_public:
        storage.write_bytes(f"{path}{_THIRD}", images.described.tobytes())
    storage.write_bytes(f"{path}{SECOND}", images.hashes.tobytes())
    storage.write_bytes(path, images.numbers.astype(_STORED).tobytes())


def read(path: storage.Path) -> SeenImages | None:
    """Return the images in the files; None (unknown) if one of the first two is missing, damaged or empty.

    Every model has seen some images, so an empty file has lost its content. Without the third, hashes decide.
    """
    try:
        content, second = storage.read_bytes(path), storage.read_bytes(f"{path}{SECOND}")
    except storage.MISSING:
        return None
    if not (content and second) or len(content) % _STORED.itemsize or len(second) % _HASH_BYTES:
        return None
    found, hashes = np.frombuffer(content, _STORED).astype(np.uint64), _hashes_of([second])
    if not bool((found[1:] > found[:-1]).all()) or not np.array_equal(np.unique(hashes, axis=0), hashes):
        return None
    try:
        third = storage.read_bytes(f"{path}{_THIRD}")
    except storage.MISSING:
        third = b""
    is_usable = not len(third) % signatures.NUM_BYTES
    return SeenImages(numbers=found, hashes=hashes, described=signatures.unpacked([third] if is_usable else []))


def _frequencies(hashes: Hashes) -> npt.NDArray[np.float32]:
    """Return the frequencies [N, 64] that hashes have the signed roots of, with a Euclidean norm of 1 or, of 0, 0."""
    roots = hashes.astype(np.float32)
    found: npt.NDArray[np.float32] = roots * np.abs(roots)
    found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1)
    return found


def record(checkpoint_directory: str, data: Dataset, sources: list[str]) -> str:
    """Write what a training sees, at its start; a resumed one keeps the file, because its source may be gone.

    Args:
        checkpoint_directory: Checkpoint folder of the training.
        data: Its dataset.
        sources: Files of the models whose weights it starts from.

    Returns:
        Why it is unknown, so that there is no file; empty if it is known.
    """
    path = storage.join(checkpoint_directory, FILE)
    is_there = storage.exists(path)
    if is_there and checkpoints.steps(checkpoint_directory):
        return ""
    try:
        own, others = of_dataset(data), [each for each in map(read, sources) if each is not None]
        known = union(own, *others) if len(own.numbers) and len(others) == len(sources) else None
        reason = "" if known is not None else "the starting weights come without the images that they have seen"
        if not len(own.numbers):
            reason = f"the dataset's {image_list.FILE} lists no image of its training split"
    except storage.MISSING:
        known, reason = None, f"the dataset has no {image_list.FILE}"
    if known is not None:
        write(path, known)
    elif is_there:
        # Of another training, which ended before its first checkpoint.
        storage.remove(path)
    return reason
