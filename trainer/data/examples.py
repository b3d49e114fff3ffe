"""One split, ready to be read by index: pixels in memory, encoded images in memory, or records on disk.

Legend: B examples of a batch, N examples of the split, S image size.
"""

from __future__ import annotations

import abc
import functools
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from trainer.data import crops, memory, staging
from trainer.data.dataset import Dataset
from trainer.data.images import encoding_format
from trainer.data.record_reader import RecordReader

MEMORY_SHARE = 0.8
"""Share of the available memory that a split may take while it is loaded."""
_CHUNK = 512
_FEATURES = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}


class Examples(abc.ABC):
    """A split. The pixels are the same wherever they come from."""

    def __init__(self, *, image_size: int, crop: bool = False) -> None:
        """Say how images look.

        Args:
            image_size: S.
            crop: whether `gather` cuts out a random part of each image (augment=crop-and-flip).
        """
        self.image_size = image_size
        self.crop = crop

    @property
    @abc.abstractmethod
    def num_examples(self) -> int:
        """N."""

    @property
    @abc.abstractmethod
    def labels(self) -> tf.Tensor:
        """int32 [N]."""

    @property
    @abc.abstractmethod
    def num_bytes(self) -> int:
        """Memory that the images take."""

    @abc.abstractmethod
    def _read(self, indices: tf.Tensor, upcoming: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Images, uint8 [B, S, S, 3] or encoded string [B], and labels int32 [B]."""

    def gather(
        self, indices: tf.Tensor, draws: tf.Tensor | None = None, upcoming: tf.Tensor | None = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Images uint8 [B, S, S, 3] and labels int32 [B].

        Args:
            indices: int64 [B].
            draws: random numbers float32 [B, NUM_DRAWS], needed where images are cropped.
            upcoming: int64, any number of examples that will be wanted soon.
        """
        images, labels = self._read(indices, tf.zeros([0], tf.int64) if upcoming is None else upcoming)
        if self.crop and draws is not None:
            boxes = crops.boxes(draws, self.image_size)
            images = tf.map_fn(self._cropped, (images, boxes), fn_output_signature=tf.uint8)
        elif images.dtype == tf.string:
            images = tf.map_fn(lambda data: decode(data, self.image_size), images, fn_output_signature=tf.uint8)
        return tf.ensure_shape(images, (*indices.shape, self.image_size, self.image_size, 3)), labels

    def _cropped(self, pair: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        image, box = pair
        if image.dtype == tf.string and encoding_format(self.image_size) == "jpeg":
            # Only the rows and columns of the crop are decoded; the pixels are those of the whole image.
            part = tf.io.decode_and_crop_jpeg(image, box, channels=3, dct_method="INTEGER_ACCURATE")
        else:
            whole = decode(image, self.image_size) if image.dtype == tf.string else image
            part = tf.slice(whole, [box[0], box[1], 0], [box[2], box[3], 3])
        return crops.enlarge(part, self.image_size)


class ExamplesInMemory(Examples):
    """All images in memory, as pixels or encoded."""

    def __init__(self, *, images: tf.Tensor, labels: tf.Tensor, image_size: int, crop: bool = False) -> None:
        """Take images uint8 [N, S, S, 3] or encoded string [N], and labels int32 [N]."""
        super().__init__(image_size=image_size, crop=crop)
        self.images, self._labels = images, labels

    @property
    def num_examples(self) -> int:
        """N."""
        return int(self._labels.shape[0])

    @property
    def labels(self) -> tf.Tensor:
        """int32 [N]."""
        return self._labels

    @property
    def num_bytes(self) -> int:
        """Memory that the images take."""
        if self.images.dtype == tf.string:
            return int(tf.reduce_sum(tf.cast(tf.strings.length(self.images), tf.int64)))
        return self.num_examples * self.image_size * self.image_size * 3

    def _read(self, indices: tf.Tensor, upcoming: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        del upcoming
        return tf.gather(self.images, indices), tf.gather(self._labels, indices)


class ExamplesOnDisk(Examples):
    """Records read when they are wanted."""

    def __init__(self, reader: RecordReader, *, num_examples: int, image_size: int, crop: bool = False) -> None:
        """Take the reader of the split's records."""
        super().__init__(image_size=image_size, crop=crop)
        self._reader, self._num_examples = reader, num_examples

    @property
    def num_examples(self) -> int:
        """N."""
        return self._num_examples

    @functools.cached_property
    def labels(self) -> tf.Tensor:
        """int32 [N]; reads the whole split once."""
        nothing = np.zeros(0, np.int64)
        chunks = (np.arange(a, min(a + _CHUNK, self._num_examples)) for a in range(0, self._num_examples, _CHUNK))
        return tf.concat([parse(self._reader.read(chunk, nothing))[1] for chunk in chunks], axis=0)

    @property
    def num_bytes(self) -> int:
        """Memory that the images take."""
        return 0

    def _read(self, indices: tf.Tensor, upcoming: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        records = tf.numpy_function(self._reader.read, [indices, upcoming], tf.string, stateful=False)
        return parse(tf.ensure_shape(records, indices.shape))


def load_split(dataset: Dataset, split: str, *, crop: bool = False, block_size: int = 0) -> Examples:
    """Make a split readable by index, in the quickest form that this machine's memory has room for.

    Args:
        dataset: in a bucket it is copied to this machine's disk first.
        split: train, validation or test.
        crop: whether images are cropped at random.
        block_size: of the order of examples; only of interest where records stay on disk.

    Raises:
        UserError: a shard is missing, or the disk is too small.
    """
    local = staging.stage(dataset, split)
    paths = local.shard_paths(split)
    count, size = local.num_examples[split], local.image_size
    available = MEMORY_SHARE * memory.available_bytes()
    # Twice: for a moment both Python and TensorFlow hold the images.
    if 2 * count * size * size * 3 <= available:
        images, labels = _decoded(local, split)
    elif 2 * sum(os.path.getsize(path) for path in paths) <= available:
        images, labels = _encoded(local, split)
    else:
        reader = RecordReader(paths, num_records=count, block_size=block_size)
        return ExamplesOnDisk(reader, num_examples=count, image_size=size, crop=crop)
    return ExamplesInMemory(images=images, labels=labels, image_size=size, crop=crop)


def decode(data: tf.Tensor, image_size: int) -> tf.Tensor:
    """Pixels uint8 [S, S, 3] of a stored image."""
    if encoding_format(image_size) == "png":
        return tf.io.decode_png(data, channels=3)
    # Accurate: the same pixels as Pillow gives, so training, evaluation and reports see one image.
    return tf.io.decode_jpeg(data, channels=3, dct_method="INTEGER_ACCURATE")


def parse(records: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Encoded images string [B] and labels int32 [B] of records string [B]."""
    parsed = tf.io.parse_example(records, _FEATURES)
    return parsed["image"], tf.cast(parsed["label"], tf.int32)


def _decoded(dataset: Dataset, split: str) -> tuple[tf.Tensor, tf.Tensor]:
    size, count = dataset.image_size, dataset.num_examples[split]
    pixels, labels = np.empty((count, size, size, 3), np.uint8), np.empty(count, np.int32)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])  # type: ignore[untyped-decorator]
    def unpack(records: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        images, chunk_labels = parse(records)
        return tf.map_fn(lambda data: decode(data, size), images, fn_output_signature=tf.uint8), chunk_labels

    def fill(chunk: tuple[int, list[bytes]]) -> None:
        start, records = chunk
        end = start + len(records)
        images, chunk_labels = unpack(tf.constant(records))
        pixels[start:end], labels[start:end] = images.numpy(), chunk_labels.numpy()

    # TensorFlow's decoders run outside of the interpreter's lock: one chunk a thread.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(fill, _chunks(dataset, split)):
            pass
    return tf.constant(pixels), tf.constant(labels)


def _encoded(dataset: Dataset, split: str) -> tuple[tf.Tensor, tf.Tensor]:
    parts = [parse(tf.constant(records)) for _, records in _chunks(dataset, split)]
    return tf.concat([part[0] for part in parts], axis=0), tf.concat([part[1] for part in parts], axis=0)


def _chunks(dataset: Dataset, split: str) -> Iterator[tuple[int, list[bytes]]]:
    """(index of the first, records) of neighbouring records."""
    reader = RecordReader(dataset.shard_paths(split), num_records=dataset.num_examples[split], block_size=0)
    nothing: npt.NDArray[np.int64] = np.zeros(0, np.int64)
    for start in range(0, dataset.num_examples[split], _CHUNK):
        end = min(start + _CHUNK, dataset.num_examples[split])
        yield start, list(reader.read(np.arange(start, end), nothing))
