"""The environment variables that the service gives to a replica: its cluster, and where its outputs go.

Sources: Vertex AI documentation training/distributed-training and training/code-requirements. The shape of
CLUSTER_SPEC also follows the tests of google-cloud-aiplatform 1.165.1.
"""

import json
import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from localvertex._base.json_object import JsonObject
from localvertex.containers.variables import (
    CLUSTER_SPEC,
    JOB_ID,
    METRIC_FILE,
    OUTPUT_FOLDERS,
    PROJECT_ID,
    TF_CONFIG,
    TORCH,
    TRIAL_ID,
)
from localvertex.jobs.job import PRIMARY, ROLES, CustomJob, Replica
from localvertex.values import facts

_PORTS = range(20_000, 32_000)
"""Ports below the ephemeral ones, so that the system assigns none of these to another program."""

_TORCH_IMAGES = ("-docker.pkg.dev/vertex-ai/training/pytorch-",)
"""Parts of the names of images whose replicas get the variables of `torch.distributed`; empty: none (decision 0114)."""


@contextmanager
def reserve_addresses(job: CustomJob) -> Iterator[dict[str, str]]:
    """Reserve an address on the loopback interface for each replica, while the context lasts."""
    with ExitStack() as holders:
        yield {replica.name: f"127.0.0.1:{_hold_port(holders)}" for replica in job.replicas}


def _hold_port(holders: ExitStack) -> int:
    """Bind a free port until the holders are closed."""
    for port in random.sample(_PORTS, len(_PORTS)):
        holder = socket.socket()
        with suppress(OSError):
            holder.bind(("127.0.0.1", port))
            holders.enter_context(holder)
            return port
        holder.close()
    raise OSError("no port from 20000 to 31999 is free on 127.0.0.1")


def service_environment(
    job: CustomJob, replica: Replica, *, addresses: dict[str, str], project: str, job_id: str
) -> dict[str, str]:
    """Return the variables that the service sets for a replica."""
    spec = json.dumps(_cluster_spec(job, replica, addresses))
    env = {PROJECT_ID: project, JOB_ID: job_id, CLUSTER_SPEC: spec}
    config = _tf_config(job, replica, addresses, job_id)
    if config:
        env |= {TF_CONFIG: json.dumps(config)}
    env |= _torch_variables(job, replica, addresses)
    base = (job.output_uri or job.base_output_directory).rstrip("/")
    if base:
        env |= {name: f"{base}/{folder}/" for name, folder in OUTPUT_FOLDERS.items()}
    if job.trial:
        env |= {TRIAL_ID: job.trial.id, METRIC_FILE: str(job.trial.metric_file)}
    return env


def _cluster_spec(job: CustomJob, replica: Replica, addresses: dict[str, str]) -> JsonObject:
    """Return CLUSTER_SPEC, which lists every pool under its own name."""
    cluster: dict[str, list[str]] = {}
    for each in job.replicas:
        cluster.setdefault(f"workerpool{each.pool.number}", []).append(addresses[each.name])
    return {
        "cluster": cluster,
        "environment": "cloud",
        "task": {"type": f"workerpool{replica.pool.number}", "index": replica.index, **_trial_of(job)},
        "job": json.dumps(job.spec),
    }


def _tf_config(job: CustomJob, replica: Replica, addresses: dict[str, str], job_id: str) -> JsonObject | None:
    """Return TF_CONFIG: pools under TensorFlow's names, without evaluators; None for a job of one replica."""
    if len(job.replicas) == 1:
        return None
    cluster: dict[str, list[str]] = {}
    for each in job.replicas:
        if ROLES[each.pool.number] != "evaluator":
            cluster.setdefault(ROLES[each.pool.number], []).append(addresses[each.name])
    return {
        "cluster": cluster,
        "environment": "cloud",
        "task": {"type": ROLES[replica.pool.number], "index": replica.index, "cloud": job_id, **_trial_of(job)},
        "job": json.dumps(job.spec),
    }


def _trial_of(job: CustomJob) -> dict[str, str]:
    """Return the `trial` field of a task, which is set for hyperparameter tuning only."""
    return {"trial": job.trial.id} if job.trial else {}


def _torch_variables(job: CustomJob, replica: Replica, addresses: dict[str, str]) -> dict[str, str]:
    """Return the variables of `torch.distributed`, which count machines; empty for a job of one replica."""
    ranks = [each.name for each in job.replicas if ROLES[each.pool.number] in ("chief", "worker")]
    is_torch = any(part in replica.pool.image_uri for part in _TORCH_IMAGES)
    if not is_torch or replica.name not in ranks or len(ranks) == 1:
        return {}
    host, _, port = addresses[PRIMARY].rpartition(":")
    return dict(zip(TORCH, (str(ranks.index(replica.name)), str(len(ranks)), host, port), strict=True))


def metadata_environment(address: str) -> dict[str, str]:
    """Point a replica to its metadata server, and keep Google's libraries from asking it for tokens."""
    host, ip, no_check = facts.group("metadata_variable")
    return {host: address, ip: address, no_check: "true"}
