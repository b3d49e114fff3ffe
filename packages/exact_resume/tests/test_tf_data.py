"""`keras_fit` with a tf.data.Dataset: killed and stopped in mid-epoch, it ends with the bits of an undisturbed run."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exact_resume import InputError, Sampler, keras_fit
from exact_resume.checkpoints import checkpoints
from exact_resume.tf_data import DatasetBatches

keras = pytest.importorskip("keras")
tf = pytest.importorskip("tensorflow")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")]

PROGRAM = """
import hashlib, os, sys, time
import keras, numpy as np, tensorflow as tf
import exact_resume

tf.config.threading.set_intra_op_parallelism_threads(1)
keras.utils.set_random_seed(0)
x = np.random.default_rng(0).normal(size=(96, 4)).astype("float32")

def noise(x, y):
    # Dataset.random gives each example a number of its own.
    return x[0] + tf.random.stateless_normal([4], tf.stack([y, x[1]])), tf.reduce_sum(x[0])

numbers = tf.data.Dataset.zip(tf.data.Dataset.from_tensor_slices(x), tf.data.Dataset.random(seed=4))
data = tf.data.Dataset.zip(numbers, tf.data.Dataset.random(seed=5).take(96))
data = data.shuffle(40, seed=3).map(noise, tf.data.AUTOTUNE).batch(8, drop_remainder=True).prefetch(2)
model = keras.Sequential([keras.Input([4]), keras.layers.Dense(8), keras.layers.Dropout(0.5), keras.layers.Dense(1)])
model.compile("adam", "mse")
seen = []
wait = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: time.sleep(float(sys.argv[2])))
with exact_resume.keras_fit.run(
    sys.argv[1], model=model, data=data, epochs=4, callbacks=[wait], stateless=[wait], save_every_steps=5,
) as (run, arguments):
    history = model.fit(**arguments, verbose=0)
print(hashlib.sha256(b"".join(each.tobytes() for each in model.get_weights())).hexdigest(), history.history["loss"])
"""


def start(folder: Path, seconds: float = 0.0) -> "subprocess.Popen[str]":
    words = [sys.executable, "-c", PROGRAM, str(folder), str(seconds)]
    environment = os.environ | {"KERAS_BACKEND": "tensorflow", "CUDA_VISIBLE_DEVICES": "-1"}
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def end(process: "subprocess.Popen[str]") -> str:
    stdout, stderr = process.communicate(timeout=300)
    assert process.returncode == 0, stderr
    return stdout


def interrupt(folder: Path, number: int, after: int) -> None:
    """Start it, and send a signal when a save of this step or a later one is there."""
    process = start(folder, 0.1)
    while (checkpoints.steps(str(folder)) or [0])[0] < after:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(number)
    process.communicate(timeout=300)


def test_killed_and_stopped_it_ends_with_the_same_bits(tmp_path: Path) -> None:
    """The order of the shuffle, the numbers of Dataset.random and Dropout continue, in epochs of 12 batches."""
    whole = end(start(tmp_path / "whole"))
    interrupt(tmp_path / "run", signal.SIGKILL, 5)
    interrupt(tmp_path / "run", signal.SIGTERM, 15)
    interrupt(tmp_path / "run", signal.SIGKILL, 30)
    assert end(start(tmp_path / "run")) == whole


@pytest.fixture(autouse=True)
def seed() -> None:
    keras.utils.set_random_seed(0)


def numbers(**options: Any) -> Any:
    data = tf.data.Dataset.range(40).shuffle(20, **options)
    return data.map(lambda number: (tf.cast(tf.fill([4], number), tf.float32) / 40, number)).batch(5)


def taken(batches: DatasetBatches, steps: range) -> list[Any]:
    found = [batches.batch(step)[1].tolist() for step in steps]
    batches.end_step(steps[-1])
    return found


def test_what_was_read_ahead_comes_once_after_a_restore() -> None:
    batches, other = DatasetBatches(numbers(seed=1), tf), DatasetBatches(numbers(seed=1), tf)
    taken(batches, range(6))
    batches.batch(9)  # as Keras reads ahead, beyond the end of the epoch
    state = batches.get_state()
    rest = taken(batches, range(6, 20))
    other.set_state(state)
    assert taken(other, range(6, 20)) == rest
    # An earlier state, as after a rehearsal.
    batches.set_state(state)
    assert taken(batches, range(6, 20)) == rest
    with pytest.raises(IndexError, match="step 19 was dropped"):
        batches.batch(19)


def test_the_state_of_another_dataset_is_refused() -> None:
    state = DatasetBatches(numbers(), tf).get_state()
    with pytest.raises(InputError, match=r"data is another tf.data.Dataset than that of the checkpoint"):
        DatasetBatches(tf.data.Dataset.range(40).map(lambda number: (number, number)).batch(5), tf).set_state(state)


def model() -> Any:
    built = keras.Sequential([keras.Input([4]), keras.layers.Dense(1)])
    built.compile("sgd", "mse")
    return built


def mapped(function: Callable[[Any, Any], Any]) -> Any:
    return numbers().unbatch().map(function).batch(5)


def generator() -> Any:
    signature = (tf.TensorSpec([4]), tf.TensorSpec([]))
    rows = tf.data.Dataset.from_generator(lambda: (([0.0] * 4, 0.0) for _ in range(9)), output_signature=signature)
    return rows.batch(5)


def stateful(number: Any) -> Any:
    return tf.py_function(lambda each: each, [number], tf.int64)


def later(function: Callable[[Any], Any]) -> Any:
    return tf.data.Dataset.range(20).concatenate(tf.data.Dataset.range(20).map(function)).batch(5)


@pytest.mark.parametrize(
    ("data", "operation"),
    [
        (lambda: generator().unbatch().shuffle(4).batch(5), "PyFunc"),
        (lambda: generator().unbatch().shuffle(4).batch(5).repeat(), "PyFunc"),
        (lambda: tf.data.Dataset.from_tensors(([[0.0] * 4], [0.0])).concatenate(generator()), "PyFunc"),
        (lambda: tf.data.Dataset.range(4).flat_map(lambda _: generator()), "PyFunc"),
        (lambda: later(stateful), "EagerPyFunc"),
        (lambda: later(lambda number: number + tf.random.uniform([], maxval=9, dtype=tf.int64)), "RandomUniformInt"),
    ],
    ids=["shuffled", "shuffled, endless", "concatenated", "flat_map", "py_function, later", "random, later"],
)
def test_what_tensorflow_refuses_only_later_is_refused_at_the_start(data: Callable[[], Any], operation: str) -> None:
    """TensorFlow itself saves each of them at least once, at the start or between two batches."""
    with pytest.raises(InputError, match=rf"position TensorFlow cannot save: .*{operation} is stateful"):
        DatasetBatches(data(), tf)


@pytest.mark.parametrize(
    "make",
    [
        lambda data: data.cache().shuffle(9, seed=1).prefetch(2),
        lambda data: tf.data.Dataset.sample_from_datasets([data, data], seed=1),
        lambda data: tf.data.Dataset.range(3).interleave(lambda _: data, num_parallel_calls=2),
        lambda data: tf.data.Dataset.zip(data, tf.data.Dataset.random(seed=1)).map(lambda pair, _: pair),
        lambda data: data.filter(lambda number: number > 3),
        lambda data: data.repeat(),
    ],
    ids=["cache", "sample", "interleave", "random", "filter", "endless"],
)
def test_what_can_be_saved_is_not_refused(make: Callable[[Any], Any]) -> None:
    batches = DatasetBatches(make(tf.data.Dataset.range(40)).batch(5), tf)
    state, rest = batches.get_state(), [batches.batch(step).tolist() for step in range(6)]
    other = DatasetBatches(make(tf.data.Dataset.range(40)).batch(5), tf)
    other.set_state(state)
    assert [other.batch(step).tolist() for step in range(6)] == rest


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (generator, {"steps_per_epoch": 2}, "position TensorFlow cannot save: .*PyFunc is stateful"),
        (
            lambda: mapped(lambda x, y: (tf.py_function(lambda each: each, [x], tf.float32), y)),
            {"steps_per_epoch": 8},
            "position TensorFlow cannot save: .*EagerPyFunc is stateful",
        ),
        (
            lambda: mapped(lambda x, y: (x + tf.random.uniform([4]), y)),
            {"steps_per_epoch": 8},
            "position TensorFlow cannot save: .*RandomUniform.* is stateful",
        ),
        (
            numbers,
            {"sampler": Sampler(num_examples=40, global_batch_size=5, seed=0)},
            "its own order; leave sampler out",
        ),
        (lambda: numbers().repeat(), {}, "steps_per_epoch is None, and the tf.data.Dataset has no known length"),
        (
            lambda: numbers().map(lambda x, y: x),
            {},
            "a tf.data.Dataset of elements of type TensorSpec; expected tuples",
        ),
        (lambda: numbers().take(0), {"steps_per_epoch": 3}, "data is an empty tf.data.Dataset"),
        (lambda: (1, 2), {}, "data is not a tf.data.Dataset; expected a sampler, and no steps_per_epoch"),
    ],
)
def test_what_cannot_be_saved_is_refused_before_the_first_step(
    tmp_path: Path, data: Callable[[], Any], options: dict[str, Any], message: str
) -> None:
    given = {"model": model(), "data": data(), "epochs": 2, **options}
    with pytest.raises(InputError, match=message), keras_fit.run(tmp_path / "run", **given):
        pass
    assert not (tmp_path / "run").exists()


def test_a_shuffle_without_a_seed_is_refused(tmp_path: Path) -> None:
    """Its later epochs would have another order; made before the seed was set, it is found by its first batch."""
    given = {"model": model(), "data": numbers(), "epochs": 2}
    with keras_fit.run(tmp_path / "run", **given) as (_, arguments):
        given["model"].fit(**arguments, verbose=0)
    with pytest.raises(InputError, match=r"config\.first_batch_sha256 is .* there and .* here"):
        with keras_fit.run(tmp_path / "run", **given | {"data": numbers()}):
            pass
    imports = "import tensorflow as tf; from exact_resume.tf_data import DatasetBatches"
    program = f"{imports}; DatasetBatches(tf.data.Dataset.range(9), tf)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "InputError: TensorFlow has no seed, so a shuffle without one would have another order" in done.stderr


def test_another_length_of_the_epoch_is_another_run(tmp_path: Path) -> None:
    given = {"model": model(), "data": numbers(seed=1), "epochs": 2}
    with keras_fit.run(tmp_path / "run", **given) as (_, arguments):
        given["model"].fit(**arguments, verbose=0)
    with pytest.raises(InputError, match=r"config\.steps_per_epoch is 8 there and 4 here"):
        with keras_fit.run(tmp_path / "run", **given | {"epochs": 4, "steps_per_epoch": 4}):
            pass


def test_without_interruption_it_is_a_plain_fit_of_the_repeated_dataset(tmp_path: Path) -> None:
    keras.utils.set_random_seed(1)
    plain, given = model(), {"model": model(), "data": numbers(seed=1), "epochs": 3}
    given["model"].set_weights(plain.get_weights())
    expected = plain.fit(numbers(seed=1).repeat(), epochs=3, steps_per_epoch=8, shuffle=False, verbose=0)
    with keras_fit.run(tmp_path / "run", **given) as (_, arguments):
        history = given["model"].fit(**arguments, verbose=0)
    assert history.history == expected.history
    assert [each.tobytes() for each in given["model"].get_weights()] == [each.tobytes() for each in plain.get_weights()]
