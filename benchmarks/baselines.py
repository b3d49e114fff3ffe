"""The baselines of benchmarks/train.py, each in a separate process: plain `fit`, and a bare loop, which is the limit.

`python -m benchmarks.baselines ORDER` trains with the fields of the JSON object ORDER, see `Order`, and prints steps
per second. With TF_CONFIG set, all workers do the same number of calls, because none may stop by its own clock.

- `fit` trains the trainer's own network with Keras 3 on one device. With several workers tf-keras trains the layers of
  `convnet` under MultiWorkerMirroredStrategy, because Keras 3's `fit` does not work there.
- `bare` has the trainer's network, batch normalisation, optimizer and loss in a `tf.function` that slices its batches
  from a tensor in memory. With several workers it sums the gradients and averages in one exchange. It has no input
  pipeline, order of examples, augmentation, metrics, digests, checkpoints or event log. If asked to, its chief also
  writes a checkpoint in the background after each call, as the trainer does; only the calls are measured.
"""

import contextlib
import dataclasses
import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

_IS_CLUSTER = "TF_CONFIG" in os.environ


@dataclasses.dataclass(frozen=True, kw_only=True)
class Order:
    """Training to measure, and for how long."""

    side: str
    """fit or bare."""
    dataset: str
    model: str
    batch_size: int
    """Global batch."""
    steps_per_call: int
    """Steps per epoch of `fit`, and per graph call of the bare loop."""
    seconds: float
    """To measure, after two calls that warm up."""
    num_calls: int = 0
    """Calls with several workers, instead of the seconds."""
    is_saving: bool = False
    """Whether the chief of the bare loop writes checkpoints, in the background during the next call."""
    xla: bool | None = None
    """None: the faster of both for the bare loop, and Keras' choice for `fit`."""
    precision: str = "float32"
    recipe: dict[str, Any] = dataclasses.field(default_factory=dict)
    """For `fit` on one device, which does the same with Keras' own means; instead of the layers of an augmentation, it
    has RandAugment in the map of `tf.data`."""


def main(order: Order) -> None:
    """Print the steps per second."""
    os.environ["TF_USE_LEGACY_KERAS"] = "1" if _IS_CLUSTER and order.side == "fit" else "0"
    os.environ["KERAS_BACKEND"] = "tensorflow"
    import tensorflow as tf

    from trainer.data import dataset

    # Before any operation, because it opens the connections.
    chosen = tf.distribute.MultiWorkerMirroredStrategy() if _IS_CLUSTER else tf.distribute.get_strategy()
    data = dataset.load(order.dataset)
    records = list(data.records("train"))
    pixels, labels = [record.pixels() for record in records], [record.label for record in records]
    if order.side == "fit":
        rate = _fit(order, chosen, data, pixels, labels)
    else:
        choices = [False, True] if order.xla is None else [order.xla]
        rate = max(_bare(order, chosen, data, pixels, labels, xla=xla) for xla in choices)
    print(json.dumps({"steps_per_second": rate}))


class _Stopwatch:
    """Decides after each call whether to continue, and knows the rate of the calls after the second."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._seconds: list[float] = []
        self._began = time.perf_counter()

    def has_ended(self) -> bool:
        """Note the end of a call; return whether it was the last one."""
        now = time.perf_counter()
        self._seconds.append(now - self._began)
        self._began = now
        if _IS_CLUSTER:
            return len(self._seconds) >= self._order.num_calls
        return sum(self._seconds[2:]) > self._order.seconds

    def resume(self) -> None:
        """Leave out the time since the last call."""
        self._began = time.perf_counter()

    def rate(self) -> float:
        """Return the steps per second."""
        return len(self._seconds[2:]) * self._order.steps_per_call / sum(self._seconds[2:])


def _fit(order: Order, chosen: Any, data: Any, pixels: list[Any], labels: list[int]) -> float:
    import tensorflow as tf

    batches = tf.data.Dataset.from_tensor_slices((pixels, labels)).shuffle(len(labels)).repeat()
    batches = batches.batch(order.batch_size, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
    with chosen.scope():
        model = _convnet(data.image_size, data.num_classes) if _IS_CLUSTER else _model(order, data)
        # "auto" does not use XLA on a machine without GPU; tf-keras does not know the word.
        jit = {} if _IS_CLUSTER else {"jit_compile": "auto" if order.xla is None else order.xla}
        model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"], **jit)
    more: dict[str, Any] = {}
    if order.recipe:
        batches, more = _use_recipe(order.recipe, model, batches, data)
    watch = _Stopwatch(order)

    def end_epoch(epoch: int, logs: Any) -> None:
        del epoch, logs
        if watch.has_ended():
            model.stop_training = True

    callback = tf.keras.callbacks.LambdaCallback(on_epoch_end=end_epoch)
    model.fit(batches, steps_per_epoch=order.steps_per_call, epochs=10**6, verbose=0, callbacks=[callback], **more)
    return watch.rate()


def _use_recipe(recipe: dict[str, Any], model: Any, batches: Any, data: Any) -> tuple[Any, dict[str, Any]]:
    """Compile the model as a recipe says; return the batches, and further arguments of `fit`."""
    import keras
    import tensorflow as tf

    optimizer = recipe.get("optimizer", {"class_name": "Adam", "config": {}})
    loss: Any = "sparse_categorical_crossentropy"
    if given := recipe.get("loss"):
        loss = getattr(keras.losses, given["class_name"])(**given["config"])
        batches = batches.map(lambda images, labels: (images, tf.one_hot(labels, data.num_classes)))
    if "augmentation" in recipe:
        augment = keras.layers.RandAugment(value_range=(0, 255))
        batches = batches.map(
            lambda images, labels: (tf.cast(augment(images), tf.uint8), labels), num_parallel_calls=tf.data.AUTOTUNE
        ).prefetch(tf.data.AUTOTUNE)
    chosen = getattr(keras.optimizers, optimizer["class_name"])(**optimizer["config"])
    model.compile(chosen, loss, metrics=["accuracy"])
    if "class_weights" not in recipe:
        return batches, {}
    counts = data.counts("train")
    return batches, {"class_weight": {label: sum(counts) / len(counts) / count for label, count in enumerate(counts)}}


def _model(order: Order, data: Any) -> Any:
    from trainer.learner import precision
    from trainer.models import models

    with precision.policy(order.precision):
        return models.build(order.model, image_size=data.image_size, num_classes=data.num_classes, weights="none")


def _convnet(image_size: int, num_classes: int) -> Any:
    """Return the layers of trainer.models.small_networks, from tf-keras."""
    import tf_keras
    from tf_keras import layers

    images = tf_keras.Input((image_size, image_size, 3), dtype="uint8")
    hidden = layers.Rescaling(1 / 127.5, offset=-1.0)(images)
    for filters in (16, 32, 64):
        hidden = layers.Conv2D(filters, 3, padding="same", use_bias=False)(hidden)
        hidden = layers.BatchNormalization(momentum=0.9)(hidden)
        hidden = layers.MaxPooling2D(2)(layers.ReLU()(hidden))
    hidden = layers.Dropout(0.3)(layers.Flatten()(hidden))
    return tf_keras.Model(images, layers.Softmax(dtype="float32")(layers.Dense(num_classes)(hidden)))


def _bare(order: Order, chosen: Any, data: Any, pixels: list[Any], labels: list[int], *, xla: bool) -> float:
    import numpy as np
    import tensorflow as tf

    from trainer.config import TrainConfig
    from trainer.learner import keras_internals, optimizers

    with chosen.scope():
        model = _model(order, data)
        keras_internals.fuse_batch_normalization(model)
        optimizer = optimizers.build(TrainConfig(learning_rate_schedule="constant"), num_steps=1)
        optimizer.build(model.trainable_variables)
    num_replicas = chosen.num_replicas_in_sync
    size = order.batch_size // num_replicas
    # In an order without pattern, because the stored one may have a class after the other.
    shuffled = np.random.default_rng(0).permutation(len(labels))
    held = tf.constant(np.stack(pixels)[shuffled]), tf.constant(np.array(labels, np.int32)[shuffled])
    replica_step = _replica_step(model, optimizer, order.batch_size, num_replicas, xla=xla)

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def call() -> tf.Tensor:
        def step(number: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            begin = number % (len(labels) // size) * size
            batch = [each[begin : begin + size] for each in held]
            batch = [tf.ensure_shape(each, (size, *each.shape[1:])) for each in batch]
            loss = chosen.run(replica_step, args=(*batch,))
            return number + 1, chosen.experimental_local_results(loss)[0]

        return tf.while_loop(lambda number, _: number < order.steps_per_call, step, (0, tf.constant(0.0)))[1]

    watch, is_saving = _Stopwatch(order), order.is_saving and chosen.cluster_resolver.task_id == 0
    variables = [*model.variables, *optimizer.variables] if is_saving else []
    with _saver(variables) as save:
        for number in itertools.count(1):
            # Waits for the device.
            assert np.isfinite(call().numpy())
            if watch.has_ended():
                break
            save(number * order.steps_per_call)
            watch.resume()
    return watch.rate()


@contextlib.contextmanager
def _saver(variables: list[Any]) -> Iterator[Callable[[int], None]]:
    """Yield a function that copies the variables after a number of steps, and writes them as the trainer does.

    Without variables it does nothing. Each measurement has a folder of its own: in one that another has taken, it would
    wait for a minute.
    """
    if not variables:
        yield lambda step: None
        return
    import numpy as np

    from exact_resume.checkpoints.async_writer import CheckpointWriter
    from exact_resume.checkpoints.checkpoints import Best, Checkpoint
    from exact_resume.checkpoints.lease import Lease

    with tempfile.TemporaryDirectory() as folder:
        lease = Lease(folder)
        lease.take({})
        nothing: dict[str, Any] = {"keep": 3, "best": Best(), "saved_step": 0, "log_event": lambda *_, **__: None}
        writer = CheckpointWriter(folder, lease, **nothing)

        def save(step: int) -> None:
            writer.settle(wait=True)
            arrays = [np.array(variable) for variable in variables]
            checkpoint = Checkpoint(step=step, best=Best(step=step), identity={}, run_id="bare", arrays=arrays)
            writer.write(checkpoint, pause_seconds=0.0)

        yield save
        writer.settle(wait=True)


def _replica_step(
    model: Any, optimizer: Any, batch_size: int, num_replicas: int, *, xla: bool
) -> Callable[[Any, Any], Any]:
    """Return the function of a replica that trains on images and labels and returns the loss."""
    import keras
    import tensorflow as tf

    def gradients(images: Any, labels: Any) -> tuple[Any, Any, Any]:
        weights, others = (
            [variable.value for variable in variables]
            for variables in (model.trainable_variables, model.non_trainable_variables)
        )
        with tf.GradientTape() as tape:
            tape.watch(weights)
            probabilities, changed = model.stateless_call(weights, others, images, training=True)
            loss = tf.reduce_sum(keras.losses.sparse_categorical_crossentropy(labels, probabilities)) / batch_size
        return loss, tape.gradient(loss, weights), changed

    compute = tf.function(gradients, jit_compile=xla, autograph=False)

    def step(images: Any, labels: Any) -> Any:
        loss, slopes, changed = compute(images, labels)
        if num_replicas > 1:
            floats = [value for value in changed if value.dtype.is_floating]
            context = tf.distribute.get_replica_context()
            summed = iter(context.all_reduce(tf.distribute.ReduceOp.SUM, [loss, *slopes, *floats]))
            loss, slopes = next(summed), [next(summed) for _ in slopes]
            changed = [next(summed) / num_replicas if value.dtype.is_floating else value for value in changed]
        for variable, value in zip(model.non_trainable_variables, changed, strict=True):
            variable.assign(value)
        optimizer.apply_gradients(zip(slopes, model.trainable_variables, strict=True))
        return loss

    return step


if __name__ == "__main__":
    main(Order(**json.loads(sys.argv[1])))
