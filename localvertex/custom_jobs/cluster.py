"""Who is in a job and under which address: CLUSTER_SPEC and TF_CONFIG.

Source: Vertex AI's page on distributed training; the shape of CLUSTER_SPEC also from the tests of
google-cloud-aiplatform 1.165.1.
"""

import json
import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from localvertex.custom_jobs.job import ROLES, CustomJob, Replica

PORTS = range(20_000, 32_000)
"""Below the ports that systems hand out by themselves, so that nobody gets one of these by chance."""


@contextmanager
def held_addresses(job: CustomJob) -> Iterator[dict[str, str]]:
    """An address on the loopback interface for each replica, nobody else's while the context lasts."""
    with ExitStack() as holders:
        yield {replica.name: f"127.0.0.1:{hold_port(holders)}" for replica in job.replicas}


def hold_port(holders: ExitStack) -> int:
    """A free port, bound until the holders are closed."""
    for port in random.sample(PORTS, len(PORTS)):
        holder = socket.socket()
        with suppress(OSError):
            holder.bind(("127.0.0.1", port))
            holders.enter_context(holder)
            return port
        holder.close()
    raise OSError("no port from 20000 to 31999 is free on 127.0.0.1")


def cluster_spec(job: CustomJob, replica: Replica, addresses: dict[str, str]) -> dict[str, Any]:
    """CLUSTER_SPEC: every pool under its own name."""
    cluster: dict[str, list[str]] = {}
    for each in job.replicas:
        cluster.setdefault(f"workerpool{each.pool.number}", []).append(addresses[each.name])
    return {
        "cluster": cluster,
        "environment": "cloud",
        "task": {"type": f"workerpool{replica.pool.number}", "index": replica.index},
        "job": json.dumps(job.spec),
    }


def tf_config(job: CustomJob, replica: Replica, addresses: dict[str, str], job_id: str) -> dict[str, Any] | None:
    """TF_CONFIG: pools under TensorFlow's names, without evaluators; None for a job of one replica.

    `task.trial` is set for hyperparameter tuning only.
    """
    if len(job.replicas) == 1:
        return None
    cluster: dict[str, list[str]] = {}
    for each in job.replicas:
        if ROLES[each.pool.number] != "evaluator":
            cluster.setdefault(ROLES[each.pool.number], []).append(addresses[each.name])
    return {
        "cluster": cluster,
        "environment": "cloud",
        "task": {"type": ROLES[replica.pool.number], "index": replica.index, "cloud": job_id},
        "job": json.dumps(job.spec),
    }
