"""The quotas that a training job counts against, under the names that the service uses in its error messages.

Sources: "The following quota metrics exceed quota limits: ..." in GoogleCloudPlatform/vertex-ai-samples#700 (GPUs) and
training-data-analyst#2457 (CPUs: N1 and E2 share one metric, other families have one each). The guide on Flex Start and
Spot adds that both use the preemptible quotas. GPU names without such a message follow the same pattern.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from localvertex.machines.catalogue.catalogue import Catalogue

_SERVICE = "aiplatform.googleapis.com"
_SIZE = re.compile(r"^(H100(?:_MEGA)?|H200)_\d+GB$")
"""Sizes that the metric leaves out; it keeps only the two of the A100 apart."""
_SHARED_FAMILIES = ("n1", "e2")


@dataclass(frozen=True, kw_only=True)
class MachineRequest:
    """Identical machines that run at the same time."""

    machine_type: str
    accelerator_type: str = ""
    accelerator_count: int = 0
    """Per machine."""
    replica_count: int = 1


def quota_metrics(
    requests: Iterable[MachineRequest], *, scheduling_strategy: str, catalogue: Catalogue
) -> dict[str, float]:
    """Return metric -> units (vCPUs or GPUs) that all machines need together.

    TPUs, and vCPUs of machines that the catalogue has no number for, are left out.
    """
    needed = defaultdict[str, float](int)
    kind = "" if scheduling_strategy == "STANDARD" else "preemptible_"
    prefix = f"{_SERVICE}/custom_model_training_{kind}"
    for request in requests:
        machine = catalogue.machines.get(request.machine_type)
        if machine and machine.vcpus:
            family = machine.name.partition("-")[0]
            metric = f"{prefix}cpus" if family in _SHARED_FAMILIES else f"{prefix}{family}_cpus"
            needed[metric] += machine.vcpus * request.replica_count
        if request.accelerator_type.startswith("NVIDIA_"):
            metric = f"{prefix}{gpu_quota_name(request.accelerator_type)}_gpus"
            needed[metric] += request.accelerator_count * request.replica_count
    return needed


def gpu_quota_name(accelerator_type: str) -> str:
    """Return the name in the metric, e.g. nvidia_t4 for NVIDIA_TESLA_T4, nvidia_h100 for NVIDIA_H100_80GB."""
    bare = accelerator_type.removeprefix("NVIDIA_").removeprefix("TESLA_")
    name = _SIZE.sub(r"\1", bare)
    return f"nvidia_{name.lower()}"
