#!/usr/bin/env bash
# tensorflow 2.21.0, keras 3.15.1: `keras.utils.set_random_seed` does not reach TensorFlow's global generator.
#
# It calls `random.seed`, `numpy.random.seed` and `tf.random.set_seed`, so `tf.random.normal` is repeated. A generator
# of `tf.random.get_global_generator` that exists already goes on as before: a second seeding in one process, such as
# between two trainings, repeats all random numbers but those. Only the first use after the start follows the seed.
#
# Seen on 2026-11-29 with Python 3.11: the three lines below. Exits with 1 if one of them changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tensorflow-cpu==2.21.0 keras==3.15.1
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" - <<'PYTHON'
import keras
import tensorflow as tf


def draws():
    keras.utils.set_random_seed(1)
    generator = tf.random.get_global_generator()
    return float(tf.random.normal([])), float(keras.random.normal([])), float(generator.normal([]))


pairs = list(zip(draws(), draws()))
names = ("tf.random.normal", "keras.random.normal", "tf.random.get_global_generator")
repeated = [first == second for first, second in pairs]
for name, each in zip(names, repeated):
    print(f"{name} is repeated after a second seeding: {each}")
raise SystemExit(repeated != [True, True, False])
PYTHON
