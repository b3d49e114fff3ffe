"""Which numbers the devices compute with; variables and sums stay float32."""

from __future__ import annotations

import tensorflow as tf


def choose(wanted: str, *, exact: bool) -> str:
    """The precision for the devices of this machine.

    bfloat16 on GPUs of compute capability 8.0 and newer (A100, L4, H100), which needs no loss scaling; float16 with
    loss scaling on 7.x (V100, T4); float32 on others, on CPUs, and with --exact unless another is asked for.
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
