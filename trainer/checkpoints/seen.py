"""The images that a model has seen in training and validation, or that a model it started from has seen.

The file has the first 8 bytes of each image's SHA-256, as sorted big-endian numbers. It outlives the dataset.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from exact_resume.checkpoints import checkpoints
from exact_resume.files import storage
from trainer.data.dataset import Dataset
from trainer.data.preparing import image_list

FILE = "seen_images"
"""In a checkpoint folder, a folder with starting weights, and `assets.extra` of an exported model."""
Hashes = npt.NDArray[np.uint64]
_DIGITS = 16
_STORED = np.dtype(">u8")


def of_dataset(data: Dataset) -> Hashes:
    """Return the images of the training and validation split, sorted.

    Validation counts, because it chooses the checkpoint.
    """
    return of_hashes(
        line["content_hash"]
        for line in image_list.read(data.directory)
        if "content_hash" in line and line["split"] in ("train", "validation")
    )


def of_hashes(content_hashes: Iterable[str]) -> Hashes:
    """Return the numbers of SHA-256 digests in hexadecimal, sorted and each once."""
    return np.unique(numbers(content_hashes))


def numbers(content_hashes: Iterable[str]) -> Hashes:
    """Return the number of each SHA-256 digest in hexadecimal, in their order."""
    return np.array([int(each[:_DIGITS], 16) for each in content_hashes], np.uint64)


def write(path: storage.Path, hashes: Hashes) -> None:
    """Write a file of images."""
    storage.write_bytes(path, np.unique(hashes).astype(_STORED).tobytes())


def read(path: storage.Path) -> Hashes | None:
    """Return the images in a file, sorted; None (unknown) if it is missing, damaged or empty.

    Every model has seen some images, so an empty file has lost its content.
    """
    try:
        content = storage.read_bytes(path)
    except storage.MISSING:
        return None
    if not content or len(content) % _STORED.itemsize:
        return None
    hashes = np.frombuffer(content, _STORED).astype(np.uint64)
    return hashes if bool((hashes[1:] > hashes[:-1]).all()) else None


def _union(*several: Hashes | None) -> Hashes | None:
    """Return the images of several sets; None, which is unknown, if one of them is."""
    known = [each for each in several if each is not None]
    return np.unique(np.concatenate(known)) if len(known) == len(several) else None


def record(checkpoint_directory: str, data: Dataset, sources: list[str]) -> str:
    """Write what a training sees, at its start; a resumed one keeps the file, because its source may be gone.

    Args:
        checkpoint_directory: Of the training.
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
        own = of_dataset(data)
        known = _union(own, *map(read, sources)) if len(own) else None
        reason = "" if known is not None else "the starting weights come without the images that they have seen"
        if not len(own):
            reason = f"the dataset's {image_list.FILE} lists no image of its training split"
    except storage.MISSING:
        known, reason = None, f"the dataset has no {image_list.FILE}"
    if known is not None:
        write(path, known)
    elif is_there:
        # Of another training, which ended before its first checkpoint.
        storage.remove(path)
    return reason
