"""Hands the GPUs of this machine out to replicas, as many to each as the job's spec counts."""

import os
import shutil
import subprocess
from collections.abc import Callable

from localvertex.custom_jobs.job import CustomJob

VARIABLE = "CUDA_VISIBLE_DEVICES"
NONE = "-1"
"""A device that is not there hides all of them, for CUDA and TensorFlow alike."""

QUERY = ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"]
MAX_QUERY_SECONDS = 30


def gpu_environments(job: CustomJob, warn: Callable[[str], None]) -> dict[str, dict[str, str]]:
    """For each replica the variable that shows it its GPUs; empty where nothing has to be said.

    Says once when the machine has fewer than the job counts. Then all replicas that want GPUs get equally many, none
    if need be: one that trains on a CPU beside others on GPUs would hold them up.
    """
    wanted = {replica.name: replica.pool.num_gpus for replica in job.replicas if replica.pool.num_gpus}
    gpus = visible_gpus()
    num_wanted = sum(wanted.values())
    share = max(wanted.values(), default=0) if num_wanted <= len(gpus) else len(gpus) // len(wanted)
    if num_wanted > len(gpus):
        counted = f"{num_wanted} GPU{'' if num_wanted == 1 else 's'}"
        got = f"{share} each" if share else "none and use the CPU"
        warn(f"the job counts {counted}, this machine has {len(gpus)}: its replicas get {got}")
    if not gpus:
        return {replica.name: {} for replica in job.replicas}
    left = iter(gpus)
    environments = {}
    for replica in job.replicas:
        own = [next(left) for _ in range(min(share, wanted.get(replica.name, 0)))]
        environments[replica.name] = {VARIABLE: ",".join(own) or NONE}
    return environments


def visible_gpus() -> list[str]:
    """What the driver calls this machine's GPUs; only those that the user's own environment shows."""
    if VARIABLE in os.environ:
        return [name for name in os.environ[VARIABLE].split(",") if name.strip() not in ("", NONE)]
    if shutil.which(QUERY[0]) is None:
        return []
    try:
        found = subprocess.run(QUERY, capture_output=True, text=True, timeout=MAX_QUERY_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        # A driver that does not answer has no GPU for us.
        return []
    return found.stdout.split()
