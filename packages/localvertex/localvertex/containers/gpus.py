"""The GPUs of this machine that the user's environment shows."""

import os

from localvertex.processes.answers import ask

VARIABLE = "CUDA_VISIBLE_DEVICES"
NONE = "-1"
"""An index that no device has hides all of them, for CUDA and TensorFlow alike."""

_QUERY = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
_MAX_QUERY_SECONDS = 30


def visible_gpus() -> list[str]:
    """List this machine's GPUs by the driver's indices, limited to those that the user's environment shows."""
    if VARIABLE in os.environ:
        return [name for name in os.environ[VARIABLE].split(",") if name.strip() not in ("", NONE)]
    found = ask(_QUERY, seconds=_MAX_QUERY_SECONDS)
    # GPUs are unusable when their driver does not answer.
    return [] if found.returncode else found.stdout.split()
