"""A split that is read by index: pixels in memory, or records on disk.

Legend: B examples of a batch, N examples of the split, S image size.
"""

import abc
import functools
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import numpy.typing as npt
import psutil
import tensorflow as tf

from localvertex._base import linux
from trainer.data import staging
from trainer.data.augmentation import basic
from trainer.data.dataset import Dataset
from trainer.data.images import encoding_format
from trainer.data.sampler import NUM_WINDOW_BLOCKS
from trainer.data.stored.shards import Shards

_Indices = npt.NDArray[np.int64]
_NUM_THREADS = 4


MEMORY_FRACTION = 0.8
"""Fraction of the available memory that a split may use while it is loaded."""
_CHUNK = 512
_FEATURES = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
ImagesAndLabels = tuple[tf.Tensor, tf.Tensor]


class RecordReader:
    """Reads single records, or whole blocks where the examples are shuffled by blocks. Safe for several threads."""

    def __init__(self, paths: Sequence[str], *, num_records: int, block_size: int) -> None:
        """Open the shards.

        Args:
            paths: ArrayRecord files, in order.
            num_records: Records in all files together.
            block_size: Number of records that are read together and cached; 0: each is read alone.

        Raises:
            DamagedShard: A file is damaged.
        """
        self._shards = Shards(paths, num_records)
        self._num_records = num_records
        self._block_size = block_size
        self._pool = ThreadPoolExecutor(_NUM_THREADS, thread_name_prefix="records")
        self._lock = threading.Lock()
        # The current window and the one that is read ahead, each with one more block at both ends.
        remembered = functools.lru_cache(2 * (NUM_WINDOW_BLOCKS + 2))
        self._started = remembered(lambda number: self._pool.submit(self._load, number))

    def read(self, indices: _Indices, upcoming: _Indices) -> npt.NDArray[np.object_]:
        """Return the records, bytes [B], at indices [B]; load the blocks of `upcoming` in the background."""
        if not self._block_size:
            return np.array(self._shards.read(indices.tolist()), dtype=object)
        needed = np.unique(indices // self._block_size).tolist()
        blocks = {number: self._block(number) for number in needed}
        for number in np.unique(upcoming // self._block_size).tolist():
            self._block(number)
        records = [blocks[index // self._block_size].result()[index % self._block_size] for index in indices.tolist()]
        return np.array(records, dtype=object)

    def _block(self, number: int) -> Future[list[bytes]]:
        # Without the lock, two threads could start to read the same block.
        with self._lock:
            return self._started(number)

    def _load(self, number: int) -> list[bytes]:
        start = number * self._block_size
        end = min(start + self._block_size, self._num_records)
        return self._shards.read(list(range(start, end)))


class Examples(abc.ABC):
    """A split. The pixels are the same in each of its forms."""

    labels: tf.Tensor
    """Labels int32 [N]; of records on disk, the first access reads the whole split."""

    def __init__(self, *, num_examples: int, image_size: int, crop: bool = False) -> None:
        """Set what `gather` returns.

        Args:
            num_examples: N.
            image_size: S.
            crop: Whether a random crop is cut out of each image (augment=crop-and-flip).
        """
        self.num_examples, self.image_size, self.crop = num_examples, image_size, crop

    @abc.abstractmethod
    def _read(self, indices: tf.Tensor, upcoming: tf.Tensor) -> ImagesAndLabels:
        """Return images uint8 [B, S, S, 3] and labels int32 [B]."""

    def gather(
        self, indices: tf.Tensor, random_numbers: tf.Tensor | None = None, upcoming: tf.Tensor | None = None
    ) -> ImagesAndLabels:
        """Return images uint8 [B, S, S, 3] and labels int32 [B].

        Args:
            indices: Positions in the split, int64 [B].
            random_numbers: Values float32 [B, NUM_RANDOM_NUMBERS], needed where images are cropped.
            upcoming: Positions int64 of any number of examples that will be needed soon.
        """
        images, labels = self._read(indices, tf.zeros([0], tf.int64) if upcoming is None else upcoming)
        if self.crop and random_numbers is not None:
            boxes = basic.crop_boxes(random_numbers, self.image_size)
            images = tf.map_fn(self._crop, (images, boxes), fn_output_signature=tf.uint8)
        return tf.ensure_shape(images, (*indices.shape, self.image_size, self.image_size, 3)), labels

    def _crop(self, pair: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        image, box = pair
        return basic.enlarge(tf.slice(image, [box[0], box[1], 0], [box[2], box[3], 3]), self.image_size)


class ExamplesInMemory(Examples):
    """The pixels of all images in memory."""

    def __init__(self, *, images: tf.Tensor, labels: tf.Tensor, image_size: int, crop: bool = False) -> None:
        """Hold images uint8 [N, S, S, 3] and labels int32 [N]."""
        super().__init__(num_examples=int(labels.shape[0]), image_size=image_size, crop=crop)
        self.images, self.labels = images, labels

    @property
    def num_bytes(self) -> int:
        """Memory that the images use."""
        return self.num_examples * self.image_size * self.image_size * 3

    def _read(self, indices: tf.Tensor, upcoming: tf.Tensor) -> ImagesAndLabels:
        del upcoming
        return tf.gather(self.images, indices), tf.gather(self.labels, indices)


class ExamplesOnDisk(Examples):
    """Records that are read from the disk when a batch needs them."""

    def __init__(self, reader: RecordReader, *, num_examples: int, image_size: int, crop: bool = False) -> None:
        """Use the reader of the split's records."""
        super().__init__(num_examples=num_examples, image_size=image_size, crop=crop)
        self._reader = reader

    @functools.cached_property
    def labels(self) -> tf.Tensor:
        """Labels int32 [N]."""
        return tf.concat([_parse(records)[1] for _, records in _chunks(self._reader, self.num_examples)], axis=0)

    def _read(self, indices: tf.Tensor, upcoming: tf.Tensor) -> ImagesAndLabels:
        records = tf.numpy_function(self._reader.read, [indices, upcoming], tf.string, stateful=False)
        return _unpack(tf.ensure_shape(records, indices.shape), self.image_size)


def load_split(dataset: Dataset, split: str, *, crop: bool = False, block_size: int = 0) -> Examples:
    """Make a split readable by index, in the fastest form that fits into this machine's memory.

    Args:
        dataset: A dataset in a bucket is copied to this machine's disk first.
        split: `train`, `validation` or `test`.
        crop: Whether images are cropped at random.
        block_size: Examples per block of the sampler; used only where records stay on disk.

    Raises:
        UserError: A shard is missing, or the disk is too small.
    """
    local = staging.stage(dataset, split)
    paths = local.shard_paths(split)
    count, size = local.num_examples[split], local.image_size
    # Twice, because for a moment both Python and TensorFlow hold the images.
    if 2 * count * size * size * 3 > MEMORY_FRACTION * available_bytes():
        reader = RecordReader(paths, num_records=count, block_size=block_size)
        return ExamplesOnDisk(reader, num_examples=count, image_size=size, crop=crop)
    images, labels = _load(RecordReader(paths, num_records=count, block_size=0), count, size)
    return ExamplesInMemory(images=images, labels=labels, image_size=size, crop=crop)


def _decode(data: tf.Tensor, image_size: int) -> tf.Tensor:
    """Return the pixels uint8 [S, S, 3] of a stored image."""
    if encoding_format(image_size) == "png":
        return tf.io.decode_png(data, channels=3)
    # The accurate method gives the same pixels as Pillow, so training, evaluation and reports see one image.
    return tf.io.decode_jpeg(data, channels=3, dct_method="INTEGER_ACCURATE")


def _parse(records: tf.Tensor) -> ImagesAndLabels:
    """Return the encoded images string [B] and labels int32 [B] of records string [B]."""
    parsed = tf.io.parse_example(records, _FEATURES)
    return parsed["image"], tf.cast(parsed["label"], tf.int32)


def _unpack(records: tf.Tensor, image_size: int) -> ImagesAndLabels:
    """Return the images uint8 [B, S, S, 3] and labels int32 [B] of records string [B]."""
    encoded, labels = _parse(records)
    return tf.map_fn(lambda data: _decode(data, image_size), encoded, fn_output_signature=tf.uint8), labels


def _load(reader: RecordReader, count: int, size: int) -> ImagesAndLabels:
    pixels, labels = np.empty((count, size, size, 3), np.uint8), np.empty(count, np.int32)

    unpack = tf.function(
        lambda records: _unpack(records, size), input_signature=[tf.TensorSpec([None], tf.string)], autograph=False
    )

    def fill(chunk: tuple[int, npt.NDArray[np.object_]]) -> None:
        start, records = chunk
        end = start + len(records)
        images, chunk_labels = unpack(tf.constant(records))
        pixels[start:end], labels[start:end] = images.numpy(), chunk_labels.numpy()

    # TensorFlow's decoders release the interpreter's lock: one chunk per thread.
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for _ in pool.map(fill, _chunks(reader, count)):
            pass
    return tf.constant(pixels), tf.constant(labels)


def _chunks(reader: RecordReader, count: int) -> Iterator[tuple[int, npt.NDArray[np.object_]]]:
    """Yield (index of the first record, records) for runs of neighbouring records."""
    for start in range(0, count, _CHUNK):
        yield start, reader.read(np.arange(start, min(start + _CHUNK, count)), np.zeros(0, np.int64))


def available_bytes() -> int:
    """Return the memory that the machine has free or can reclaim, or less where a container's limit is nearer.

    Where the machine does not report its memory it is 0: data is then read from the disk, which is slower but works.

    Source: psutil's `virtual_memory().available`.
    """
    try:
        available = int(psutil.virtual_memory().available)
    except (OSError, RuntimeError):
        # Not the user's mistake: some sandboxes hide it.
        return 0
    return min(available, linux.container_bytes())
