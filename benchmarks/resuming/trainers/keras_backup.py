"""Keras' `BackupAndRestore`, which saves at each epoch, with the arguments that `fit` has by default."""

import os
import time

os.environ |= {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
import keras
from sklearn.datasets import load_digits

keras.utils.set_random_seed(1)
examples, labels = load_digits(return_X_y=True)
examples = examples.astype("float32") / 16


class Log(keras.callbacks.Callback):
    """Prints each step."""

    def on_train_batch_end(self, batch, logs=None):
        """Print the mean loss of the epoch so far, as `fit` shows it."""
        time.sleep(0.05)
        optimizer = self.model.optimizer
        rate = float(optimizer.learning_rate)
        print(f"step {int(optimizer.iterations)}: loss={logs['loss']} learning_rate={rate}", flush=True)


layers = [keras.layers.Dense(16, "relu"), keras.layers.Dropout(0.5), keras.layers.Dense(10)]
model = keras.Sequential([keras.Input([64]), *layers])
rate = keras.optimizers.schedules.CosineDecay(0.01, 64)
model.compile(keras.optimizers.Adam(rate), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
backup = keras.callbacks.BackupAndRestore(os.environ["AIP_CHECKPOINT_DIR"])
model.fit(examples, labels, 256, epochs=8, verbose=2, callbacks=[backup, Log()])
os.makedirs(os.environ["AIP_MODEL_DIR"], exist_ok=True)
model.save_weights(os.environ["AIP_MODEL_DIR"] + "/model.weights.h5")
