"""The machines of a training job: worker pool specs as Vertex AI takes them, checked before any is requested."""

import dataclasses
from typing import Any

import accelerators
from training_job.image import PLACEHOLDER_IMAGE
from userinput.errors import UserError

PYTHON_COMMAND = ("python", "-m", "trainer.task")
# Vertex allows a CustomJob at most 7 days with FLEX_START and runs 7 days by default otherwise.
WEEK_SECONDS = 7 * 24 * 3600


@dataclasses.dataclass(frozen=True, kw_only=True)
class Machines:
    """What the training job runs on; fields are named as in the pipeline's parameters."""

    machine_type: str
    accelerator_type: str = ""
    """Vertex's name, e.g. NVIDIA_L4; empty for a machine without GPUs."""
    accelerator_count: int = 0
    """GPUs per machine, not per job."""
    replica_count: int = 1
    """Machines that train: the chief and `replica_count - 1` workers."""
    parameter_server_count: int = 0
    scheduling_strategy: str = "STANDARD"
    timeout_seconds: int = WEEK_SECONDS

    def __post_init__(self) -> None:
        """Refuse what no machine catalogue has to be asked about."""
        if self.replica_count < 1:
            raise UserError(f"replica_count is {self.replica_count}; at least 1 machine has to train")
        if self.parameter_server_count < 0:
            raise UserError(
                f"parameter_server_count is {self.parameter_server_count}; it is a number of machines, 0 or more"
            )
        if self.parameter_server_count and self.replica_count == 1:
            # Google's launcher drops the empty pool 1, and the parameter servers would become workers.
            raise UserError(
                f"parameter_server_count is {self.parameter_server_count} with replica_count 1; "
                "parameter servers need at least one worker beside the chief: set replica_count to 2 or more"
            )
        if self.timeout_seconds < 1:
            raise UserError(
                f"timeout_seconds is {self.timeout_seconds}; give the longest time the job may take, in seconds"
            )

    def worker_pool_specs(self, *, image: str, args: list[str]) -> list[dict[str, Any]]:
        """Return the pools in Vertex's order: chief, workers, parameter servers.

        Parameter servers hold variables and need no GPU: they get the machine without its accelerators where that
        exists, and the catalogue is asked by `check` whether it does.
        """
        container = {"image_uri": image, "command": list(PYTHON_COMMAND), "args": args}
        machine: dict[str, Any] = {"machine_type": self.machine_type}
        if self.accelerator_type or self.accelerator_count:
            machine |= {"accelerator_type": self.accelerator_type, "accelerator_count": self.accelerator_count}
        pools = [{"machine_spec": machine, "replica_count": 1, "container_spec": container}]
        if self.replica_count > 1:
            pools.append(
                {"machine_spec": machine, "replica_count": self.replica_count - 1, "container_spec": container}
            )
        if self.parameter_server_count:
            pools.append(
                {
                    "machine_spec": {"machine_type": self.machine_type},
                    "replica_count": self.parameter_server_count,
                    "container_spec": container,
                }
            )
        return pools

    def __str__(self) -> str:
        """Return e.g. `2 x n1-standard-8 with 1 x NVIDIA_TESLA_T4 each, SPOT`."""
        gpus = f"with {self.accelerator_count} x {self.accelerator_type}" if self.accelerator_type else "without GPUs"
        each = " each" if self.replica_count > 1 and self.accelerator_type else ""
        servers = f", {self.parameter_server_count} parameter servers" if self.parameter_server_count else ""
        return f"{self.replica_count} x {self.machine_type} {gpus}{each}{servers}, {self.scheduling_strategy}"

    @property
    def restart_job_on_worker_restart(self) -> bool:
        """Synchronous training cannot take a worker back: when one restarts, all have to (facts of tf.distribute)."""
        return self.replica_count > 1


def check(machines: Machines, *, image: str, region: str) -> list[accelerators.Finding]:
    """Return the findings about the machines in that region.

    Raises:
        UserError: Vertex would refuse the job; the message has the first reasons and the nearest valid choices.
    """
    findings = accelerators.check_worker_pools(
        machines.worker_pool_specs(image=image, args=[]),
        region=region,
        scheduling_strategy=machines.scheduling_strategy,
        timeout_seconds=machines.timeout_seconds,
        restart_job_on_worker_restart=machines.restart_job_on_worker_restart,
    )
    # Somebody who names an image means it: a placeholder is a mistake then.
    rules = {"placeholder-image"} if image != PLACEHOLDER_IMAGE else set()
    errors = [finding for finding in findings if finding.severity == "error" or finding.rule in rules]
    if errors:
        raise UserError("; ".join(dict.fromkeys(map(_sentence, errors))))
    # compile.py says itself, and better, what a file without an image is good for.
    return [finding for finding in findings if image != PLACEHOLDER_IMAGE or finding.rule != "placeholder-image"]


def _sentence(finding: accelerators.Finding) -> str:
    nearest = f" (nearest: {', '.join(finding.alternatives)})" if finding.alternatives else ""
    return f"{finding.message}{nearest}"
