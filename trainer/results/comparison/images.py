"""The test images for a comparison: those that neither model has seen, as stored or as the source has them."""

import dataclasses
import hashlib
import itertools
from collections import Counter
from collections.abc import Collection, Iterator

import numpy as np

from exact_resume.files import storage
from exact_resume.files.overlap import in_order
from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.spelling import on_one_line
from trainer.checkpoints import seen
from trainer.data import staging
from trainer.data.dataset import Dataset
from trainer.data.preparing import image_list
from trainer.data.sources import factory
from trainer.data.sources.source import SourceImage
from trainer.results.comparison.not_comparable import NotComparable

_NUM_THREADS = 16
Image = tuple[bytes, str]
"""An encoded image and its class."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Unseen:
    """The test images that no model has seen."""

    content_hashes: dict[str, str]
    """Name in the source -> SHA-256 of the original."""
    num_left_out: int
    """Test images that a model has seen."""
    class_names: dict[str, str] = dataclasses.field(default_factory=dict)
    """Name in the source -> class."""

    def of_classes(self, class_names: Collection[str]) -> "Unseen":
        """Return the images of some classes."""
        kept = {name: digest for name, digest in self.content_hashes.items() if self.class_names[name] in class_names}
        return dataclasses.replace(self, content_hashes=kept)

    def among(self, numbers: seen.Numbers) -> "Unseen":
        """Return the images of some numbers, see `trainer.checkpoints.seen.numbers`."""
        is_kept = np.isin(seen.numbers(self.content_hashes.values()), numbers)
        return dataclasses.replace(self, content_hashes=dict(itertools.compress(self.content_hashes.items(), is_kept)))

    def num_images(self, class_names: Collection[str]) -> dict[str, int]:
        """Return the number of images of each of these classes, without classes that have none."""
        found = Counter(self.class_names[name] for name in self.content_hashes)
        return {name: found[name] for name in class_names if found[name]}


def unseen(data: Dataset, *known: seen.SeenImages) -> Unseen:
    """Return the test images without those that a model has seen in its training or validation.

    An image counts as seen if its bytes are equal, or if its perceptual hash is at distance 0: it was saved again.
    """
    # One text per class.
    shared = {name: name for name in data.class_names}
    test, classes, hashes = {}, {}, []
    for line in image_list.read(data.directory):
        if line["split"] == "test" and "content_hash" in line:
            test[line["name"]], classes[line["name"]] = line["content_hash"], shared[line["label"]]
            hashes.append(seen.hash_of(line))
    images = seen.union(*known)
    is_seen = np.isin(seen.numbers(test.values()), images.numbers) | images.look_like(seen.hashes_of(hashes))
    kept = {name: digest for (name, digest), left_out in zip(test.items(), is_seen, strict=True) if not left_out}
    return Unseen(
        content_hashes=kept,
        num_left_out=int(is_seen.sum()),
        class_names=classes,
    )


def prepared_images(data: Dataset, wanted: Unseen) -> Iterator[Image]:
    """Yield the images as `prepare` stored them.

    Raises:
        UserError: A shard is missing or damaged.
    """
    for record in staging.stage(data, "test").records("test"):
        if record.file_name in wanted.content_hashes:
            yield record.image_bytes, data.class_names[record.label]


def originals(data: Dataset, wanted: Unseen, source: str) -> Iterator[Image]:
    """Yield the images as the source has them, read again.

    Args:
        data: The dataset; the shards of its test split are read for the classes, because `prepare` decided about them.
        wanted: The images.
        source: Source that `prepare` read.

    Raises:
        NotComparable: An image is gone, or is another one than at `prepare`.
    """
    records = staging.stage(data, "test").records("test")
    classes = {record.file_name: data.class_names[record.label] for record in records}
    left = dict(wanted.content_hashes)
    with storage.scratch("compare") as scratch:
        try:
            opened = factory.open_source(source, str(scratch))
        except UserError as error:
            raise NotComparable(f"the originals of the test images cannot be read: {error}") from error
        chosen = (image for image in opened.images() if image.name in wanted.content_hashes)
        for image, content in in_order(lambda image: (image, _read(image)), chosen, num_threads=_NUM_THREADS):
            if hashlib.sha256(content).hexdigest() != left.pop(image.name, ""):
                raise NotComparable(f"the original of test image {image.name} has changed since prepare")
            yield content, classes[image.name]
    if left:
        raise NotComparable(f"the originals of {len(left):,} test images are missing, such as {min(left)}")


def _read(image: SourceImage) -> bytes:
    try:
        return image.read()
    except FileNotFoundError as error:
        raise NotComparable(f"the original of test image {image.name} is missing ({on_one_line(error)})") from error
