"""The test images for a comparison, as stored or as the source has them."""

import hashlib
from collections.abc import Iterator

from exact_resume.files import storage
from exact_resume.files.overlap import in_order
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.spelling import on_one_line
from trainer.data import staging
from trainer.data.dataset import Dataset
from trainer.data.sources import factory
from trainer.data.sources.source import SourceImage
from trainer.results.comparison.evidence import Evidence
from trainer.results.comparison.not_comparable import NotComparable

_NUM_THREADS = 16
Image = tuple[bytes, str]
"""An encoded image and its class."""


def prepared_images(data: Dataset, wanted: Evidence) -> Iterator[Image]:
    """Yield the images as `prepare` stored them.

    Raises:
        UserError: A shard is missing or damaged.
    """
    for _, record in wanted.chosen(staging.stage(data, "test").records("test")):
        yield record.image_bytes, data.class_names[record.label]


def originals(data: Dataset, wanted: Evidence, source: str) -> Iterator[Image]:
    """Yield the images as the source has them, read again.

    Args:
        data: The dataset; the shards of its test split are read for the classes, because `prepare` decided about them.
        wanted: The images.
        source: Source that `prepare` read.

    Raises:
        NotComparable: An image is missing, or has changed since `prepare`.
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
