"""The properties of the training devices on which the bits of a result depend."""

import os
import platform

import tensorflow as tf

from localvertex._base import linux


def kind() -> str:
    """Return the models of this machine's GPUs, or its CPU's model and number of cores, without using them."""
    gpus = tf.config.list_physical_devices("GPU")
    names = {str(tf.config.experimental.get_device_details(gpu).get("device_name", "GPU")) for gpu in gpus}
    if names:
        return " and ".join(sorted(names))
    # Eigen splits the sums of a matrix product by the sizes of the caches and by the number of threads.
    num_cores = linux.num_cores() or os.cpu_count() or 1
    return f"CPU ({linux.cpu_name() or platform.machine()}, {num_cores} core{'s' if num_cores > 1 else ''})"
