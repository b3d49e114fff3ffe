"""Keras' `model.fit` on the digits of scikit-learn: python keras_fit.py FOLDER, killed and run again at any moment.

Begin with `python -m exact_resume rehearse -- python keras_fit.py FOLDER`.
"""

import hashlib
import os
import sys

os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras
import tensorflow as tf
from sklearn.datasets import load_digits

import exact_resume

# With several threads, the last bits of a sum may differ from run to run.
tf.config.threading.set_intra_op_parallelism_threads(1)
tf.config.threading.set_inter_op_parallelism_threads(1)
keras.utils.set_random_seed(0)

digits = load_digits()
x, y = (digits.data / 16).astype("float32"), digits.target
sampler = exact_resume.Sampler(num_examples=1500, global_batch_size=50, seed=0)
layers = [keras.layers.Dense(64, activation="relu"), keras.layers.Dropout(0.3), keras.layers.Dense(10)]
model = keras.Sequential([keras.Input([64]), *layers])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(0.01), loss, metrics=["accuracy"])


def note(batch: int, logs: object) -> None:
    """Write the rows of a step into a file, if the environment names one."""
    if path := os.environ.get("EXAMPLES_SEEN"):
        with open(path, "a") as file:
            print(run.step, *sampler.indices(run.step), file=file)


noting = keras.callbacks.LambdaCallback(on_train_batch_end=note)
reducing = keras.callbacks.ReduceLROnPlateau(patience=1, factor=0.5)
stopping = keras.callbacks.EarlyStopping(patience=3, restore_best_weights=True)
with exact_resume.keras_fit.run(
    sys.argv[1] if sys.argv[1:] else os.environ["AIP_CHECKPOINT_DIR"],
    model=model,
    data=(x[:1500], y[:1500]),
    sampler=sampler,
    epochs=8,
    callbacks=[stopping, reducing, noting],
    stateless=[noting],
    code=[__file__],
    save_every_steps=25,
) as (run, arguments):
    model.fit(**arguments, validation_data=(x[1500:], y[1500:]), verbose=2)
print(hashlib.sha256(b"".join(each.tobytes() for each in model.get_weights())).hexdigest())
