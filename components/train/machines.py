"""The machines of a training job: worker pool specs in Vertex AI's format, checked before any is requested."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from components.container_image import PLACEHOLDER_IMAGE
from localvertex._base.userinput.errors import UserError
from localvertex.machines import Finding, check_worker_pools, load_catalogue
from localvertex.machines.catalogue.nearest import without_accelerators
from localvertex.machines.job.finding import refuse
from trainer.settings import COUNT, POSITIVE, check_all, setting

_COMMAND = ("python", "-m", "trainer.task")
_WEEK_SECONDS = 7 * 24 * 3600
"""Vertex AI's default timeout, and the longest one that it allows with FLEX_START."""
_DAY_SECONDS = 24 * 3600
"""Vertex AI's default limit of the wait for FLEX_START."""
_MAX_SECONDS = 315_576_000_000
"""Longest duration that the API can express, about 10,000 years."""
_ANY = "ANY"
_RESERVATION = re.compile(r"projects/[^/\s]+/zones/[^/\s]+/reservations/[^/\s]+")
_RESERVATION_KEY = "compute.googleapis.com/reservation-name"
_DEFAULT_DISK_GB = 100
"""Vertex AI's default size of a boot disk."""
_RESOURCE_ID = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
"""Ids of persistent resources, as the API's reference describes them."""

_BUILD = "TensorFlow 2.21 is built with CUDA 12.5, whose compiler does not know this GPU"
_BEYOND_THE_BUILD = {
    # XLA ends the process with a fatal error of LLVM (tensorflow/tensorflow#111958).
    "NVIDIA_RTX_PRO_6000": _BUILD,
    # The same limit, inferred (openxla/xla#21822).
    "NVIDIA_B200": _BUILD,
    "NVIDIA_GB200": f"{_BUILD}, and its machines have Arm CPUs",
}
"""GPUs that this project's training image cannot use, with the reason."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Machines:
    """The machines of the training job; a field is a parameter of the pipeline or fixed by its settings."""

    machine_type: str = setting("Machine type of each machine that trains, e.g. g2-standard-8, a2-highgpu-1g.")
    accelerator_type: str = setting("GPU type, e.g. NVIDIA_L4, NVIDIA_TESLA_T4; empty to train on CPUs.", default="")
    accelerator_count: int = setting("GPUs per machine.", COUNT, default=0)
    replica_count: int = setting("Number of machines that train: the chief and the workers.", POSITIVE, default=1)
    parameter_server_count: int = setting(
        "Parameter servers for asynchronous training; 0 trains synchronously.", COUNT, default=0
    )
    scheduling_strategy: str = setting(
        "STANDARD, SPOT (cheaper, may be preempted) or FLEX_START (waits for capacity).", default="STANDARD"
    )
    timeout_seconds: int = setting(
        "Maximum duration of the training job.", range(1, _MAX_SECONDS + 1), default=_WEEK_SECONDS
    )
    max_wait_seconds: int = setting(
        "Maximum wait for the machines, only with FLEX_START.", range(_MAX_SECONDS + 1), default=_DAY_SECONDS
    )
    boot_disk_type: str = setting("pd-ssd, pd-standard, hyperdisk-balanced; empty for the machine's own.", default="")
    boot_disk_size_gb: int = setting(
        "Boot disk of each machine that trains; a dataset in a bucket must fit.", POSITIVE, default=_DEFAULT_DISK_GB
    )
    reservation: str = setting("ANY, or projects/P/zones/Z/reservations/R; empty for none.", default="")
    persistent_resource_id: str = setting(
        "Id of a persistent resource to train on; empty for the pipeline job's own, if any.", default=""
    )

    def __post_init__(self) -> None:
        """Refuse values that are wrong on any machine.

        Raises:
            UserError: A value is out of its range or does not go with another.
        """
        check_all(self)
        if self.parameter_server_count and self.replica_count == 1:
            # Google's launcher drops the empty pool 1, and the parameter servers would become workers.
            raise UserError(
                f"parameter_server_count is {self.parameter_server_count} with replica_count 1; "
                "parameter servers need at least one worker besides the chief: set replica_count to 2 or more"
            )
        if not self.scheduling_strategy:
            raise UserError("scheduling_strategy is empty; expected STANDARD, SPOT or FLEX_START")
        if not self.max_wait_seconds:
            raise UserError("max_wait_seconds is 0; expected at least 1, as 0 lets FLEX_START wait forever")
        self._check_capacity()

    def _check_capacity(self) -> None:
        if self.reservation not in ("", _ANY) and not _RESERVATION.fullmatch(self.reservation):
            raise UserError(
                f"reservation is {self.reservation!r}; expected {_ANY} or projects/PROJECT/zones/ZONE/reservations/NAME"
            )
        if not self.persistent_resource_id:
            return
        if not _RESOURCE_ID.fullmatch(self.persistent_resource_id):
            raise UserError(
                f"persistent_resource_id is {self.persistent_resource_id!r}; expected its id alone: a-z, 0-9 and -, "
                "up to 63, beginning with a letter"
            )
        if self.scheduling_strategy != "STANDARD":
            raise UserError(
                f"scheduling_strategy is {self.scheduling_strategy} with persistent_resource_id, whose machines are "
                "already running; use STANDARD"
            )

    def worker_pool_specs(
        self, *, image: str, args: list[str], command: Sequence[str] = _COMMAND, env: Mapping[str, str] | None = None
    ) -> list[dict[str, Any]]:
        """Return the worker pools in Vertex AI's order: chief, workers, parameter servers.

        Parameter servers hold variables and need no GPU, no dataset and no reservation. They get the same machine type
        without accelerators, or a general-purpose one where that does not exist.
        """
        container: dict[str, Any] = {"image_uri": image, "command": list(command), "args": args}
        if env:
            container["env"] = [{"name": name, "value": value} for name, value in env.items()]
        trains = {"machine_spec": self._machine_spec(), **self._disk_spec()}
        serves = {"machine_spec": {"machine_type": without_accelerators(load_catalogue(), self.machine_type)}}
        pools = [(trains, 1), (trains, self.replica_count - 1), (serves, self.parameter_server_count)]
        return [{**pool, "replica_count": count, "container_spec": container} for pool, count in pools if count]

    def _machine_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"machine_type": self.machine_type}
        if self.accelerator_type or self.accelerator_count:
            spec |= {"accelerator_type": self.accelerator_type, "accelerator_count": self.accelerator_count}
        if self.reservation == _ANY:
            spec["reservation_affinity"] = {"reservation_affinity_type": "ANY_RESERVATION"}
        elif self.reservation:
            spec["reservation_affinity"] = {
                "reservation_affinity_type": "SPECIFIC_RESERVATION",
                "key": _RESERVATION_KEY,
                "values": [self.reservation],
            }
        return spec

    def _disk_spec(self) -> dict[str, Any]:
        """Return nothing for the default, so that the machine gets the type that Vertex AI chooses for it."""
        if not self.boot_disk_type and self.boot_disk_size_gb == _DEFAULT_DISK_GB:
            return {}
        kind = {"boot_disk_type": self.boot_disk_type} if self.boot_disk_type else {}
        return {"disk_spec": {**kind, "boot_disk_size_gb": self.boot_disk_size_gb}}

    def __str__(self) -> str:
        """Return e.g. `2 x n1-standard-8 with 1 x NVIDIA_TESLA_T4 each, SPOT`."""
        gpus = f"with {self.accelerator_count} x {self.accelerator_type}" if self.accelerator_type else "without GPUs"
        each = " each" if self.replica_count > 1 and self.accelerator_type else ""
        servers = f", {self.parameter_server_count} parameter servers" if self.parameter_server_count else ""
        capacity = f", reservation {self.reservation}" if self.reservation else ""
        capacity += f", persistent resource {self.persistent_resource_id}" if self.persistent_resource_id else ""
        return f"{self.replica_count} x {self.machine_type} {gpus}{each}{servers}, {self.scheduling_strategy}{capacity}"

    @property
    def restart_job_on_worker_restart(self) -> bool:
        """Whether a restarted worker restarts the job: it cannot rejoin synchronous training (tf.distribute)."""
        return self.replica_count > 1

    def job(self, *, training: str, run_id: str, name: str, **container: Any) -> dict[str, Any]:
        """Return the fields of the training job of a run, as `plan` outputs them.

        Args:
            training: Folder or gs:// prefix with the folders of all runs.
            run_id: Name of the run's folder.
            name: Beginning of the job's display name.
            **container: Arguments of `worker_pool_specs`.
        """
        base = f"{training}/{run_id}"
        return {
            "worker_pool_specs": self.worker_pool_specs(**container),
            "display_name": f"{name}-{run_id}",
            "run_id": run_id,
            "base_output_directory": base,
            "checkpoint_directory": f"{base}/checkpoints/",
            "restart_job_on_worker_restart": self.restart_job_on_worker_restart,
            "timeout": f"{self.timeout_seconds}s",
            "max_wait_duration": f"{self.max_wait_seconds}s",
            "persistent_resource_id": self.persistent_resource_id,
        }


def check(machines: Machines, *, image: str, region: str) -> list[Finding]:
    """Check the machines of this project's trainer for a region and return the warnings.

    Raises:
        UserError: Vertex AI would refuse the job; the message has the reasons and the nearest valid choices.
    """
    return check_any_code(machines, image=image, region=region) + beyond_the_build(machines.accelerator_type, image)


def check_any_code(machines: Machines, *, image: str, region: str) -> list[Finding]:
    """Check the machines for a region and return the warnings, whatever the container image trains with.

    Raises:
        UserError: Vertex AI would refuse the job; the message has the reasons and the nearest valid choices.
    """
    findings = check_worker_pools(
        machines.worker_pool_specs(image=image, args=[]),
        region=region,
        scheduling_strategy=machines.scheduling_strategy,
        timeout_seconds=machines.timeout_seconds,
        restart_job_on_worker_restart=machines.restart_job_on_worker_restart,
        persistent_resource_id=machines.persistent_resource_id,
    )
    # Another placeholder, such as your-project, is an error: a user who names an image wants it to run.
    refuse(findings, rules=["placeholder-image"] * (image != PLACEHOLDER_IMAGE))
    # compile.py itself explains how far a file without an image can be used.
    return [finding for finding in findings if image != PLACEHOLDER_IMAGE or finding.rule != "placeholder-image"]


def beyond_the_build(accelerator_type: str, image: str) -> list[Finding]:
    """Return the warning for an image of the user's own, if TensorFlow's build does not know the GPU.

    Raises:
        UserError: The training job would run this project's own image.
    """
    if accelerator_type not in _BEYOND_THE_BUILD:
        return []
    message = f"{accelerator_type}: {_BEYOND_THE_BUILD[accelerator_type]}"
    if image == PLACEHOLDER_IMAGE:
        raise UserError(f"{message}; choose e.g. NVIDIA_L4 or NVIDIA_H100_80GB, or give an --image that supports it")
    return [
        Finding(
            rule="training-image",
            severity="warning",
            path="worker_pool_specs[0].machine_spec.accelerator_type",
            message=f"{message}; make sure that your image supports it",
        )
    ]
