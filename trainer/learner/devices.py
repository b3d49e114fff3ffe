"""The properties of the training devices on which the bits of a result depend."""

import os
import pathlib
import platform
import re

import tensorflow as tf


def kind() -> str:
    """Return the models of this machine's GPUs, or its CPU's model and number of cores, without using them."""
    gpus = tf.config.list_physical_devices("GPU")
    names = {str(tf.config.experimental.get_device_details(gpu).get("device_name", "GPU")) for gpu in gpus}
    if names:
        return " and ".join(sorted(names))
    # Eigen splits the sums of a matrix product by the sizes of the caches and by the number of threads.
    num_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return f"CPU ({_cpu_name()}, {num_cores} core{'s' if num_cores > 1 else ''})"


def _cpu_name() -> str:
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1).strip() if found else platform.machine()
