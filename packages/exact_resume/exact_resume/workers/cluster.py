"""The machines that train together and this process's task, read from TF_CONFIG. Needs no TensorFlow."""

import dataclasses
import json
import re
from collections.abc import Mapping
from typing import Any

from exact_resume.errors import InputError
from exact_resume.text import quote

_MEMBERS = ("chief", "worker", "ps")
_ADDRESS = re.compile(r"[^\s/]+:[0-9]{1,5}")
_REDUCTION_SERVER = "reductionserver"
"""Part of the name of Google's Reduction Server image, whose pool Vertex AI calls ps although it runs no TensorFlow."""

Addresses = Mapping[str, tuple[str, ...]]
"""host:port of every task by type (chief, worker, ps)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cluster:
    """The machines of a job, and the task of this process."""

    addresses: Addresses = dataclasses.field(default_factory=dict)
    """host:port of every task by type (chief, worker, ps); empty for a single machine."""
    task_type: str = "worker"
    """chief, worker, ps or evaluator."""
    task_index: int = 0

    @property
    def num_workers(self) -> int:
        """Number of machines that compute gradients."""
        return max(1, len(self.tasks("chief", "worker")))

    def tasks(self, *kinds: str) -> dict[str, str]:
        """Return host:port of all tasks of some kinds (chief, worker, ps) by their name, such as worker 0."""
        return {
            f"{kind} {index}": address for kind in kinds for index, address in enumerate(self.addresses.get(kind, ()))
        }

    @property
    def task(self) -> str:
        """Name of this process's task, such as worker 0."""
        return f"{self.task_type} {self.task_index}"

    @property
    def is_chief(self) -> bool:
        """Whether this process writes checkpoints: the chief, or worker 0 if there is no chief."""
        first = "chief" if "chief" in self.addresses else "worker"
        return (self.task_type, self.task_index) == (first, 0)

    @property
    def has_parameter_servers(self) -> bool:
        """Whether the variables are on machines of their own."""
        return "ps" in self.addresses

    @property
    def is_evaluator(self) -> bool:
        """Whether this process only evaluates the checkpoints that the others write."""
        return self.task_type == "evaluator"


def read(environment: Mapping[str, str]) -> Cluster:
    """Return the cluster that TF_CONFIG describes.

    Args:
        environment: Environment variables; Vertex AI sets TF_CONFIG for jobs of several replicas.

    Raises:
        InputError: A field of TF_CONFIG is wrong. The message names the field.
    """
    config = _json(environment.get("TF_CONFIG", ""))
    addresses = _addresses(config.get("cluster") or {})
    task_type, task_index = _task(config.get("task") or {}, addresses)
    if _has_reduction_server(config):
        addresses.pop("ps", None)
    if task_type == "ps" and "ps" not in addresses:
        raise InputError(
            "TF_CONFIG: field task.type is 'ps', but this job has a Reduction Server in place of parameter servers;"
            " expected chief or worker"
        )
    found = Cluster(addresses=addresses, task_type=task_type, task_index=task_index)
    if found.is_evaluator:
        return found
    if found.has_parameter_servers and "chief" not in addresses:
        raise InputError("TF_CONFIG: field cluster.chief is missing; parameter servers need a chief")
    return found if found.has_parameter_servers or found.num_workers > 1 else Cluster()


def _json(text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        config = None
    if not isinstance(config, dict):
        raise InputError(f"TF_CONFIG is {quote(text)}; expected a JSON object with the fields cluster and task")
    return config


def _addresses(cluster: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(cluster, dict):
        raise InputError(f"TF_CONFIG: field cluster is {quote(cluster)}; expected an object of lists of host:port")
    found: dict[str, tuple[str, ...]] = {}
    for kind, addresses in cluster.items():
        if kind not in _MEMBERS:
            raise InputError(f"TF_CONFIG: field cluster.{kind[:60]} is not known; expected chief, worker or ps")
        if not isinstance(addresses, list) or not all(map(_ADDRESS.fullmatch, map(str, addresses))):
            raise InputError(f"TF_CONFIG: field cluster.{kind} is {quote(addresses)}; expected a list of host:port")
        if addresses:
            found[kind] = tuple(addresses)
    return found


def _task(task: Any, addresses: Addresses) -> tuple[str, int]:
    if not addresses and not task:
        return "worker", 0
    kind = task.get("type") if isinstance(task, dict) else None
    if kind not in (*_MEMBERS, "evaluator"):
        raise InputError(f"TF_CONFIG: field task.type is {quote(kind)}; expected chief, worker, ps or evaluator")
    # It may arrive as text.
    index, count = str(task.get("index")), len(addresses.get(kind, ()))
    if not re.fullmatch("[0-9]{1,9}", index) or (kind != "evaluator" and int(index) >= count):
        raise InputError(f"TF_CONFIG: field task.index is {quote(index)}, but cluster.{kind} has {count} addresses")
    return kind, int(index)


def _has_reduction_server(config: Mapping[str, Any]) -> bool:
    # Vertex AI puts the job's own specification into TF_CONFIG, as an object or as text.
    job = config.get("job")
    return _REDUCTION_SERVER in (job if isinstance(job, str) else json.dumps(job))
