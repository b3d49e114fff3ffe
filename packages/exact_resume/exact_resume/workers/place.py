"""Place of this process among the workers of a job, from TF_CONFIG, CLUSTER_SPEC or PyTorch's variables."""

import dataclasses
import json
from collections.abc import Mapping

from exact_resume.errors import InputError
from exact_resume.text import quote
from exact_resume.workers import cluster

_POOLS = ("workerpool0", "workerpool1")
"""Of Vertex AI, whose machines train; the others have parameter servers and evaluators
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

    PyTorch's variables count processes, of which a machine may have several; the others count machines.

    Raises:
        InputError: A variable is wrong, or two contradict each other.
    """
    machines = {"TF_CONFIG": _of_tensorflow(environment), "CLUSTER_SPEC": _of_vertex(environment)}
    given = {name: place for name, place in machines.items() if place}
    if len({(place.rank, place.num_workers) for place in given.values()}) > 1:
        raise InputError(f"{_list(given)}; expected the same place, so unset one of them")
    process = _of_torch(environment)
    if not process:
        return next(iter(given.values()), Place())
    for name, place in given.items():
        num_processes, rest = divmod(process.num_workers, place.num_workers)
        # torchrun, which sets LOCAL_WORLD_SIZE, numbers the machines by itself.
        is_other = "LOCAL_WORLD_SIZE" not in environment and process.rank // max(1, num_processes) != place.rank
        if rest or is_other:
            raise InputError(
                f"{_list({'RANK and WORLD_SIZE': process, name: place})}; expected as many processes on each machine,"
                " numbered by machine, so unset one of them"
            )
    return process


def _list(places: Mapping[str, Place]) -> str:
    return " and ".join(f"{name}: worker {each.rank} of {each.num_workers}" for name, each in places.items())


def _of_tensorflow(environment: Mapping[str, str]) -> Place | None:
    if not environment.get("TF_CONFIG", "").strip():
        return None
    found = cluster.read(environment)
    if found.is_evaluator or "ps" in found.addresses:
        raise InputError("TF_CONFIG has an evaluator or parameter servers; exact_resume.run is for chief and workers")
    addresses = [*found.addresses.get("chief", ()), *found.addresses.get("worker", ())]
    rank = found.task_index + (found.task_type == "worker" and "chief" in found.addresses)
    return Place(rank=rank, num_workers=found.num_workers, host=_host(addresses))


def _of_vertex(environment: Mapping[str, str]) -> Place | None:
    if not (text := environment.get("CLUSTER_SPEC", "").strip()):
        return None
    try:
        found = json.loads(text)
        pool, index = found["task"]["type"], int(found["task"].get("index", 0))
        machines = {name: [str(each) for each in found["cluster"].get(name, [])] for name in _POOLS}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise InputError(f"CLUSTER_SPEC is {quote(text)}; expected JSON with the fields cluster and task") from None
    if pool not in _POOLS:
        raise InputError(f"CLUSTER_SPEC: field task.type is {quote(pool)}; expected {' or '.join(_POOLS)}")
    if not 0 <= index < len(machines[pool]):
        raise InputError(
            f"CLUSTER_SPEC: field task.index is {index}, but cluster.{pool} has {len(machines[pool])} addresses"
        )
    addresses = [address for name in _POOLS for address in machines[name]]
    rank = index + (len(machines[_POOLS[0]]) if pool == _POOLS[1] else 0)
    return Place(rank=rank, num_workers=len(addresses), host=_host(addresses))


def _of_torch(environment: Mapping[str, str]) -> Place | None:
    if "WORLD_SIZE" not in environment:
        return None
    rank, count = environment.get("RANK", ""), environment["WORLD_SIZE"]
    if not (rank.isdecimal() and count.isdecimal() and int(rank) < int(count)):
        raise InputError(f"RANK is {quote(rank)} and WORLD_SIZE {quote(count)}; expected numbers such as 0 and 2")
    if not (host := environment.get("MASTER_ADDR", "")) and int(count) > 1:
        raise InputError(f"MASTER_ADDR is missing, and WORLD_SIZE is {count}; expected the machine of rank 0")
    return Place(rank=int(rank), num_workers=int(count), host=host or Place.host)


def _host(addresses: list[str]) -> str:
    return addresses[0].rpartition(":")[0].strip("[]") if addresses else Place.host
