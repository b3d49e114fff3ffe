"""Place of this process among the workers of a job, from PyTorch's variables, TF_CONFIG or CLUSTER_SPEC."""

import dataclasses
import json
from collections.abc import Mapping

from exact_resume.errors import InputError
from exact_resume.text import quote
from exact_resume.workers import cluster
from exact_resume.workers.cluster import Cluster

_KINDS = {"workerpool0": "chief", "workerpool1": "worker"}
"""Vertex AI's pools of machines that train; the others have parameter servers and evaluators
(https://cloud.google.com/vertex-ai/docs/training/distributed-training)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Place:
    """Number of a worker, and where the first one is."""

    rank: int = 0
    """0 is the chief."""
    num_workers: int = 1
    host: str = "127.0.0.1"
    """The chief's name or address, as the other workers know it."""

    @property
    def is_local(self) -> bool:
        """Whether all workers are on one machine, which knows them by its loopback address."""
        return self.host.startswith("127.") or self.host in ("localhost", "::1")


def read(environment: Mapping[str, str]) -> Place:
    """Return the place of this process; without any of the variables, it is the only worker.

    Raises:
        InputError: A variable is wrong, or two contradict each other.
    """
    places = {
        "RANK and WORLD_SIZE": _of_torch(environment),
        "TF_CONFIG": _of_tensorflow(environment),
        "CLUSTER_SPEC": _of_vertex(environment.get("CLUSTER_SPEC", "").strip()),
    }
    (name, own), *others = [(name, place) for name, place in places.items() if place] or [("", Place())]
    for other, machine in others:
        # The former two may count several processes of a machine.
        per_machine, rest = divmod(own.num_workers, machine.num_workers)
        # torchrun, which sets LOCAL_WORLD_SIZE, numbers the machines by itself.
        if rest or ("LOCAL_WORLD_SIZE" not in environment and own.rank // per_machine != machine.rank):
            raise InputError(
                f"{name}: worker {own.rank} of {own.num_workers}, but {other}: worker {machine.rank} of"
                f" {machine.num_workers}; expected the same, or as many processes on each machine, so unset one of them"
            )
    return own


def _of_torch(environment: Mapping[str, str]) -> Place | None:
    if "WORLD_SIZE" not in environment:
        return None
    rank, count, host = (environment.get(name, "") for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR"))
    if not (rank.isdecimal() and count.isdecimal() and int(rank) < int(count) and (host or count == "1")):
        raise InputError(
            f"RANK is {quote(rank)}, WORLD_SIZE {quote(count)} and MASTER_ADDR {quote(host)}; expected numbers such as"
            " 0 and 2, and the machine of rank 0"
        )
    return Place(rank=int(rank), num_workers=int(count), host=host or Place.host)


def _of_tensorflow(environment: Mapping[str, str]) -> Place | None:
    if not environment.get("TF_CONFIG", "").strip():
        return None
    found = cluster.read(environment)
    if found.is_evaluator or "ps" in found.addresses:
        raise InputError("TF_CONFIG has an evaluator or parameter servers; exact_resume.run is for chief and workers")
    return of_cluster(found)


def of_cluster(found: Cluster) -> Place:
    """Return the place of a chief or worker in its cluster."""
    tasks = found.tasks("chief", "worker") or {found.task: f"{Place.host}:"}
    host = next(iter(tasks.values())).rpartition(":")[0].strip("[]")
    return Place(rank=[*tasks].index(found.task), num_workers=len(tasks), host=host)


def _of_vertex(text: str) -> Place | None:
    try:
        spec = json.loads(text or "null")
        if spec is None:
            return None
        kinds = {kind: spec["cluster"][pool] for pool, kind in _KINDS.items() if pool in spec["cluster"]}
        config = {"cluster": kinds, "task": {"index": 0} | spec["task"] | {"type": _KINDS[spec["task"]["type"]]}}
        return _of_tensorflow({"TF_CONFIG": json.dumps(config)})
    except InputError as error:
        raise InputError(f"CLUSTER_SPEC as {error}") from None
    except (ValueError, LookupError, TypeError, RecursionError):
        raise InputError(
            f"CLUSTER_SPEC is {quote(text)}; expected JSON with the fields cluster and task, of {' or '.join(_KINDS)}"
        ) from None
