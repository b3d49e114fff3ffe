"""Batches of a `tf.data.Dataset`, with a state: the position of its iterator, and batches read ahead of the steps.

TensorFlow saves an iterator with the buffers of its shuffles, caches and prefetches, so the order after a restore is
that of an uninterrupted run. It refuses to save stateful operations, such as py_function, but it does save a shuffle
without a seed, whose later epochs have another order in each process: this is refused. Keras reads a few batches ahead
of the step that it trains; these are saved as arrays.

TensorFlow checks only what an iterator has begun. At the start it accepts a generator that a shuffle or a concatenate
has yet to begin, and later refuses it or, between two of its batches, saves it without a position. So it is also asked
about the whole dataset, unless this dataset is known to be large and may be in memory.
"""

import collections
import hashlib
import os
import tempfile
import threading
from typing import Any

from exact_resume.errors import InputError
from exact_resume.text import on_one_line

_FAIL = 2
"""TensorFlow's policy for operations with a state of their own."""
_MAX_BYTES = 2**28
"""Largest dataset of known length whose graph is written to check it: one in memory takes three times its size."""


class DatasetBatches:
    """The batches of a dataset by step, repeated endlessly."""

    def __init__(self, dataset: Any, tf: Any) -> None:
        """Start the dataset, and save its iterator once.

        Args:
            dataset: A `tf.data.Dataset` of batches.
            tf: The module tensorflow.

        Raises:
            InputError: The iterator cannot be saved.
        """
        if tf.compat.v1.random.get_seed(None)[0] is None:
            raise InputError(
                "TensorFlow has no seed, so a shuffle without one would have another order in each process; call"
                " keras.utils.set_random_seed before the tf.data.Dataset is made"
            )
        self._dataset, self._tf = dataset.repeat(), tf
        self._lock = threading.Lock()  # Keras reads in a thread of its own.
        self._iterator, self._first = iter(self._dataset), 0
        self._ahead = collections.deque[Any]()
        try:
            self._saved_iterator()
            first = self._tf.nest.flatten(self.batch(0))
            # A shuffle begins its input with the first batch, and a concatenate its second part much later.
            self._saved_iterator()
            if int(dataset.cardinality()) * sum(each.nbytes for each in first) <= _MAX_BYTES:
                variant = tf.data.experimental.to_variant(dataset)
                tf.raw_ops.DatasetToGraphV2(input_dataset=variant, external_state_policy=_FAIL)
        except StopIteration:
            raise InputError("data is an empty tf.data.Dataset; expected at least one batch") from None
        except tf.errors.FailedPreconditionError as error:
            raise InputError(
                "data is a tf.data.Dataset whose position TensorFlow cannot save:"
                f" {on_one_line(error.message.split('}} ')[-1], 300)}; use operations without a state of their"
                " own, such as tf.random.stateless_uniform, or give arrays and a sampler"
            ) from None

        self.digest = hashlib.sha256(b"".join(each.tobytes() for each in first)).hexdigest()
        """Digest of the first batch: it changes with the data, and if a shuffle was made before the seed was set."""

    def batch(self, step: int) -> Any:
        """Return the batch of a step that has not ended; reads ahead up to it."""
        with self._lock:
            if step < self._first:
                raise IndexError(f"the batch of step {step} was dropped when the step ended")
            while len(self._ahead) <= step - self._first:
                self._ahead.append(self._tf.nest.map_structure(lambda each: each.numpy(), next(self._iterator)))
            return self._ahead[step - self._first]

    def end_step(self, step: int) -> None:
        """Drop the batches up to and including the batch of a step."""
        with self._lock:
            while self._first <= step:
                self._ahead.popleft()
                self._first += 1

    def _saved_iterator(self) -> dict[str, bytes]:
        with tempfile.TemporaryDirectory() as folder:
            self._tf.train.Checkpoint(iterator=self._iterator).write(os.path.join(folder, "iterator"))
            return {each.name: _content(each.path) for each in os.scandir(folder)}

    def get_state(self) -> dict[str, Any]:
        """Return the number of ended steps, the batches read ahead, and the files of the iterator."""
        with self._lock:
            return {"first": self._first, "ahead": list(self._ahead), "files": self._saved_iterator()}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue where `get_state` was called.

        Raises:
            InputError: The dataset has changed.
        """
        iterator = iter(self._dataset)
        with tempfile.TemporaryDirectory() as folder:
            for name, content in state["files"].items():
                with open(os.path.join(folder, os.path.basename(name)), "wb") as file:
                    file.write(content)
            try:
                self._tf.train.Checkpoint(iterator=iterator).read(os.path.join(folder, "iterator")).assert_consumed()
            except (self._tf.errors.OpError, AssertionError) as error:
                raise InputError(
                    "data is another tf.data.Dataset than that of the checkpoint"
                    f" ({on_one_line(str(error), 300)}); restore its operations, or choose another folder"
                ) from None
        with self._lock:
            self._iterator, self._first, self._ahead = iterator, state["first"], collections.deque(state["ahead"])


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
