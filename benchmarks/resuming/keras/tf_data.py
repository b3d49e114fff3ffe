"""Save the iterator of a tf.data.Dataset with tf.train.Checkpoint, restore it, and compare what follows."""

import json
import os
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

numbers = tf.data.Dataset.range(100)


def double(number):
    """Return twice the number."""
    return number * 2


def jitter(number):
    """Add a number of TensorFlow's own generator."""
    return tf.cast(number, tf.float32) + tf.random.uniform([])


def interleave():
    """Return three ranges, read in turn by two threads."""
    return tf.data.Dataset.range(3).interleave(
        lambda first: tf.data.Dataset.range(first * 100, first * 100 + 30), num_parallel_calls=2
    )


options = {
    "shuffle": lambda: numbers.shuffle(20),
    "shuffle without a seed, repeat": lambda: numbers.shuffle(20).repeat(3),
    "shuffle with a seed, repeat": lambda: numbers.shuffle(20, seed=1).repeat(3),
    "interleave": lambda: interleave(),
    "parallel map": lambda: numbers.shuffle(20).map(double, tf.data.AUTOTUNE).batch(4),
    "cache": lambda: numbers.cache().shuffle(20),
    "prefetch": lambda: numbers.shuffle(20).prefetch(5),
    "filter": lambda: numbers.shuffle(20).filter(lambda number: number % 3 > 0),
    "sample_from_datasets": lambda: tf.data.Dataset.sample_from_datasets([numbers, numbers.map(double)]),
    "Dataset.random": lambda: tf.data.Dataset.random().take(100),
    "from_generator": lambda: tf.data.Dataset.from_generator(lambda: iter(range(100)), tf.int64),
    "py_function": lambda: numbers.map(lambda number: tf.py_function(double, [number], tf.int64)),
    "numpy_function": lambda: numbers.map(lambda number: tf.numpy_function(np.negative, [number], tf.int64)),
    "tf.random.uniform": lambda: numbers.map(jitter),
}
cases = {}
with tempfile.TemporaryDirectory() as folder:
    for name, make in options.items():
        iterator = iter(make())
        for _ in range(7):
            next(iterator)
        try:
            path = tf.train.Checkpoint(iterator=iterator).write(f"{folder}/{len(cases)}")
        except tf.errors.FailedPreconditionError:
            cases[name] = "refused: FailedPreconditionError"
            continue
        rest = [np.asarray(each).tolist() for each in iterator]
        again = iter(make())
        tf.train.Checkpoint(iterator=again).read(path).assert_consumed()
        later = [np.asarray(each).tolist() for each in again]
        same = next((number for number, pair in enumerate(zip(rest, later)) if pair[0] != pair[1]), len(rest))
        cases[name] = 0 if later == rest else f"another order after {7 + same} of {7 + len(rest)} elements"
versions = {"tensorflow": tf.__version__}
continued = "`tf.train.Checkpoint(iterator=)`"
print(json.dumps({"library": "tf.data", "versions": versions, "continued": continued, "cases": cases}))
