"""The environment variables that the service gives to a replica of a custom job.

Sources: Vertex AI documentation training/distributed-training and training/code-requirements.
"""

import json
import socket
from pathlib import Path
from typing import Any

from localvertex.custom_jobs import CustomJob, Replica
from localvertex.errors import TaskFailed

OUTPUT_FOLDERS = {"AIP_MODEL_DIR": "model", "AIP_CHECKPOINT_DIR": "checkpoints", "AIP_TENSORBOARD_LOG_DIR": "logs"}
"""Sub-folders of base_output_directory (CustomJobSpec reference)."""


def replica_environment(job: CustomJob, replica: Replica, project: str) -> dict[str, str]:
    """CLUSTER_SPEC, CLOUD_ML_PROJECT_ID, and the AIP_* folders when there is a base output directory."""
    env = {"CLOUD_ML_PROJECT_ID": project, "CLUSTER_SPEC": json.dumps(cluster_spec(job, replica))}
    base = job.base_output_directory.rstrip("/")
    if base:
        env |= {name: f"{base}/{folder}/" for name, folder in OUTPUT_FOLDERS.items()}
    return env


def cluster_spec(job: CustomJob, replica: Replica) -> dict[str, Any]:
    """Addresses of all replicas, and which one this is."""
    addresses: dict[str, list[str]] = {}
    for each in job.replicas:
        addresses.setdefault(f"workerpool{each.pool}", []).append(f"127.0.0.1:{free_port()}")
    return {
        "cluster": addresses,
        "environment": "cloud",
        "task": {"type": f"workerpool{replica.pool}", "index": replica.index},
        "job": json.dumps({"worker_pool_specs": list(job.pools)}),
    }


def free_port() -> int:
    """A port on the loopback interface that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def make_output_directory(uri: str) -> None:
    """Creates a local base output directory; a bucket is left to the program that writes to it.

    Raises:
        TaskFailed: it cannot be created.
    """
    if not uri or "://" in uri:
        return
    try:
        Path(uri).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TaskFailed(f"base_output_directory {uri}: {error.strerror}", is_retryable=False) from None
