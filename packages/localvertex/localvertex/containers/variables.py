"""The variables of containers: this machine's, the service's, and the user's as far as a command sees them."""

import os
import sys
from pathlib import Path

from localvertex.containers.call import ContainerCommand
from localvertex.values import facts

CLUSTER_SPEC, TF_CONFIG = facts.group("cluster")

OUTPUT_FOLDERS = {name: fact.here for name, fact in facts.group("folder").items()}
"""Sub-folders of base_output_directory (CustomJobSpec reference)."""

TRIAL_ID, METRIC_FILE = facts.group("trial")
"""The variables that Google's cloudml-hypertune reads (hypertune.py of 0.1.0.dev6)."""

PROJECT_ID, JOB_ID = facts.group("job")
"""The job's id (google-cloud-aiplatform, training_utils) is the same for all replicas and restarts."""

TORCH = (*facts.group("torch"),)
"""Variables that `torch.distributed` reads by default."""

_SERVICE_ONLY = (TF_CONFIG, CLUSTER_SPEC, JOB_ID, TRIAL_ID, METRIC_FILE, *TORCH, *OUTPUT_FOLDERS)
"""Set by the service or not at all, so these are dropped from the user's own environment."""

_KEPT = frozenset(
    "HOME LANG LANGUAGE LD_LIBRARY_PATH LOGNAME PATH PYTHONDONTWRITEBYTECODE PYTHONPATH TERM TZ USER".split()
)
_KEPT_PREFIXES = ("LC_", "CUDA_", "NVIDIA_", "OMP_", "TF_", "KERAS_", "TORCH_")
_FOR_THE_NETWORK = frozenset(
    "CURL_CA_BUNDLE HTTPS_PROXY HTTP_PROXY NO_PROXY REQUESTS_CA_BUNDLE SSL_CERT_DIR SSL_CERT_FILE".split()
)
_PIP = "PIP_"

_OF_THIS_MACHINE = frozenset(
    "HOME PATH PYTHONPATH TMPDIR VIRTUAL_ENV PYTHONUNBUFFERED PIP_PYTHON PIP_USER PIP_REQUIRE_VIRTUALENV".split()
)
_OF_LOCALVERTEX = "LOCALVERTEX_"


def own_environment() -> dict[str, str]:
    """Return the user's variables, with this interpreter's programs first in PATH."""
    env = {name: value for name, value in os.environ.items() if name not in _SERVICE_ONLY}
    path = f"{Path(sys.executable).parent}{os.pathsep}{env.get('PATH', os.defpath)}"
    return env | {"PATH": path, "PYTHONUNBUFFERED": "1"}


def in_sandbox(call: ContainerCommand, *, has_network: bool) -> dict[str, str]:
    """Return the variables of a command in the sandbox; of the user's, only those that programs need to run.

    Variables lead to sockets of agents, sessions and displays, and the names of secrets cannot be listed.
    """
    if call.credentials is not None:
        return dict(call.env)
    return {
        name: text
        for name, text in call.env.items()
        if name in call.declared
        or not _is_users(name, text)
        or name in _KEPT
        or name.startswith(_KEPT_PREFIXES)
        or (has_network and (name.upper() in _FOR_THE_NETWORK or name.startswith(_PIP)))
    }


def in_image(call: ContainerCommand) -> dict[str, str]:
    """Return the variables of a command in its image: the pipeline's, the service's and localvertex's."""
    return {
        name: text
        for name, text in call.env.items()
        if name in call.declared
        or not (_is_users(name, text) or name in _OF_THIS_MACHINE or name.startswith(_OF_LOCALVERTEX))
    }


def _is_users(name: str, text: str) -> bool:
    """Return whether a variable comes from the user's own environment, unchanged."""
    return os.environ.get(name) == text
