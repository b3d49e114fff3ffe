"""The environment variables that the service gives to a replica of a custom job.

Sources: Vertex AI documentation training/distributed-training and training/code-requirements.
"""

import json
import os
import sys
from pathlib import Path

from localvertex.custom_jobs.cluster import cluster_spec, tf_config
from localvertex.custom_jobs.job import CustomJob, Replica
from localvertex.errors import TaskFailed

OUTPUT_FOLDERS = {"AIP_MODEL_DIR": "model", "AIP_CHECKPOINT_DIR": "checkpoints", "AIP_TENSORBOARD_LOG_DIR": "logs"}
"""Sub-folders of base_output_directory (CustomJobSpec reference)."""

SERVICE_ONLY = ("TF_CONFIG", "CLUSTER_SPEC", *OUTPUT_FOLDERS)
"""What a replica is given by the service or not at all, whatever the user's own environment holds."""


def own_environment() -> dict[str, str]:
    """The user's variables, with this interpreter's programs first."""
    env = {name: value for name, value in os.environ.items() if name not in SERVICE_ONLY}
    path = f"{Path(sys.executable).parent}{os.pathsep}{env.get('PATH', os.defpath)}"
    return env | {"PATH": path, "PYTHONUNBUFFERED": "1"}


def service_environment(
    job: CustomJob, replica: Replica, *, addresses: dict[str, str], project: str, job_id: str
) -> dict[str, str]:
    """What the service tells a replica."""
    env = {"CLOUD_ML_PROJECT_ID": project, "CLUSTER_SPEC": json.dumps(cluster_spec(job, replica, addresses))}
    config = tf_config(job, replica, addresses, job_id)
    if config:
        env |= {"TF_CONFIG": json.dumps(config)}
    base = job.base_output_directory.rstrip("/")
    if base:
        env |= {name: f"{base}/{folder}/" for name, folder in OUTPUT_FOLDERS.items()}
    return env


def metadata_environment(address: str) -> dict[str, str]:
    """Where a replica finds its metadata server; Google's libraries shall not look for tokens there."""
    return {"GCE_METADATA_HOST": address, "NO_GCE_CHECK": "true"}


def local_command(command: tuple[str, ...], bin_folder: Path) -> list[str]:
    """The command with `python` meaning the one in this folder, whatever the image has."""
    program = str(bin_folder / Path(sys.executable).name) if command[0] in ("python", "python3") else command[0]
    return [program, *command[1:]]


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
