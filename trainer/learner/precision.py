"""The dtype in which devices compute; variables and sums stay float32."""

import contextlib
from collections.abc import Iterator

import keras
import tensorflow as tf

_POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16", "float16": "mixed_float16"}


def choose(wanted: str, *, exact: bool) -> str:
    """Return the precision for the devices of this machine: float32, bfloat16 or float16.

    bfloat16 on GPUs of compute capability 8.0 and newer (A100, L4, H100), which needs no loss scaling. float16 with
    loss scaling on 7.x (V100, T4). float32 on other devices, and with --exact unless another is requested.
    """
    gpus = tf.config.list_physical_devices("GPU")
    if wanted != "auto":
        return wanted
    if exact or not gpus:
        return "float32"
    capability = min(tf.config.experimental.get_device_details(gpu).get("compute_capability", (0, 0)) for gpu in gpus)
    if capability >= (8, 0):
        return "bfloat16"
    return "float16" if capability >= (7, 0) else "float32"


@contextlib.contextmanager
def policy(precision: str) -> Iterator[None]:
    """Make Keras build layers with a precision."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(_POLICIES[precision])
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)
