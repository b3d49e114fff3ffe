"""The baseline of benchmarks/train.py: plain `fit`, in a separate process.

`python benchmarks/keras_fit.py DATASET MODEL BATCH_SIZE STEPS_PER_EPOCH SECONDS` trains the trainer's own network with
Keras 3 on one device until that many seconds have been measured. With TF_CONFIG set, tf-keras trains the layers of
`convnet` under MultiWorkerMirroredStrategy, and the last number is epochs, because no worker may stop by its own clock.
"""

import json
import os
import sys
import time
from typing import Any

_IS_CLUSTER = "TF_CONFIG" in os.environ
os.environ["TF_USE_LEGACY_KERAS"] = "1" if _IS_CLUSTER else "0"
os.environ["KERAS_BACKEND"] = "tensorflow"


def main(directory: str, name: str, batch_size: int, steps_per_epoch: int, amount: float) -> None:
    """Print the steps per second of `fit` without its first two epochs."""
    import tensorflow as tf

    from trainer.data import dataset
    from trainer.models import models

    # Before any operation, because it opens the connections.
    chosen = tf.distribute.MultiWorkerMirroredStrategy() if _IS_CLUSTER else tf.distribute.get_strategy()
    data = dataset.load(directory)
    records = list(data.records("train"))
    pixels, labels = [record.pixels() for record in records], [record.label for record in records]
    batches = tf.data.Dataset.from_tensor_slices((pixels, labels)).shuffle(len(records)).repeat()
    batches = batches.batch(batch_size, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
    with chosen.scope():
        if _IS_CLUSTER:
            model = convnet(data.image_size, data.num_classes)
        else:
            model = models.build(name, image_size=data.image_size, num_classes=data.num_classes, weights="none")
        # Keras does not use XLA on a machine without GPU.
        model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    ends: list[float] = []

    def note_end(epoch: int, logs: Any) -> None:
        del epoch, logs
        ends.append(time.perf_counter())
        if not _IS_CLUSTER and len(ends) > 2 and ends[-1] - ends[1] > amount:
            model.stop_training = True

    callback = tf.keras.callbacks.LambdaCallback(on_epoch_end=note_end)
    num_epochs = int(amount) if _IS_CLUSTER else 10**6
    model.fit(batches, steps_per_epoch=steps_per_epoch, epochs=num_epochs, verbose=0, callbacks=[callback])
    print(json.dumps({"steps_per_second": (len(ends) - 2) * steps_per_epoch / (ends[-1] - ends[1])}))


def convnet(image_size: int, num_classes: int) -> Any:
    """Return the layers of trainer.models.convnet, from tf-keras."""
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


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), float(sys.argv[5]))
