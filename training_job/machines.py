"""The machines of a training job: worker pool specs in Vertex AI's format, checked before any is requested."""

import dataclasses
from typing import Any

import accelerators
from accelerators.job.finding import sentences
from training_job.container_image import PLACEHOLDER_IMAGE
from vertex_gpu_training.userinput.errors import UserError

_COMMAND = ("python", "-m", "trainer.task")
_WEEK_SECONDS = 7 * 24 * 3600
"""Vertex AI's default timeout, and the longest one that it allows with FLEX_START."""


_BUILD = "TensorFlow 2.21 is built with CUDA 12.5, whose compiler does not know this GPU"
_BEYOND_THE_BUILD = {
    # XLA ends the process with a fatal error of LLVM (tensorflow/tensorflow#111958).
    "NVIDIA_RTX_PRO_6000": _BUILD,
    # The same limit, inferred (openxla/xla#21822).
    "NVIDIA_B200": _BUILD,
    "NVIDIA_GB200": f"{_BUILD}, and its machines have Arm CPUs",
}
"""GPUs that this project's training image cannot use, with the reason."""


def _setting(help_text: str, **options: Any) -> Any:
    """Return a field whose help text is also that of its flag in compile.py."""
    return dataclasses.field(metadata={"help": help_text}, **options)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Machines:
    """The machines of the training job; the fields have the names of the pipeline's parameters."""

    machine_type: str = _setting("machine type of each replica that trains")
    accelerator_type: str = _setting("GPU type, e.g. NVIDIA_L4; empty for a machine without GPUs", default="")
    accelerator_count: int = _setting("GPUs per machine, not per job", default=0)
    replica_count: int = _setting("machines that train: the chief and the workers", default=1)
    parameter_server_count: int = _setting("parameter servers; 0 trains synchronously", default=0)
    scheduling_strategy: str = _setting("STANDARD, SPOT or FLEX_START", default="STANDARD")
    timeout_seconds: int = _setting("maximum duration of the job", default=_WEEK_SECONDS)

    def __post_init__(self) -> None:
        """Refuse values that are wrong on any machine.

        Raises:
            UserError: A value is out of its range or does not go with another.
        """
        if self.replica_count < 1:
            raise UserError(f"replica_count is {self.replica_count}; expected at least 1 machine that trains")
        if self.parameter_server_count < 0:
            raise UserError(f"parameter_server_count is {self.parameter_server_count}; expected 0 or more machines")
        if self.parameter_server_count and self.replica_count == 1:
            # Google's launcher drops the empty pool 1, and the parameter servers would become workers.
            raise UserError(
                f"parameter_server_count is {self.parameter_server_count} with replica_count 1; "
                "parameter servers need at least one worker besides the chief: set replica_count to 2 or more"
            )
        if self.timeout_seconds < 1:
            raise UserError(
                f"timeout_seconds is {self.timeout_seconds}; expected the maximum duration of the job in seconds"
            )

    def worker_pool_specs(self, *, image: str, args: list[str]) -> list[dict[str, Any]]:
        """Return the worker pools in Vertex AI's order: chief, workers, parameter servers.

        Parameter servers hold variables and need no GPU. They get the same machine type without accelerators, and
        `check` asks the catalogue whether that combination exists.
        """
        container = {"image_uri": image, "command": list(_COMMAND), "args": args}
        machine: dict[str, Any] = {"machine_type": self.machine_type}
        if self.accelerator_type or self.accelerator_count:
            machine |= {"accelerator_type": self.accelerator_type, "accelerator_count": self.accelerator_count}
        pools = [
            (machine, 1),
            (machine, self.replica_count - 1),
            ({"machine_type": self.machine_type}, self.parameter_server_count),
        ]
        return [
            {"machine_spec": machine_spec, "replica_count": count, "container_spec": container}
            for machine_spec, count in pools
            if count
        ]

    def __str__(self) -> str:
        """Return e.g. `2 x n1-standard-8 with 1 x NVIDIA_TESLA_T4 each, SPOT`."""
        gpus = f"with {self.accelerator_count} x {self.accelerator_type}" if self.accelerator_type else "without GPUs"
        each = " each" if self.replica_count > 1 and self.accelerator_type else ""
        servers = f", {self.parameter_server_count} parameter servers" if self.parameter_server_count else ""
        return f"{self.replica_count} x {self.machine_type} {gpus}{each}{servers}, {self.scheduling_strategy}"

    @property
    def restart_job_on_worker_restart(self) -> bool:
        """Whether a restarted worker restarts the job: it cannot rejoin synchronous training (tf.distribute)."""
        return self.replica_count > 1


def check(machines: Machines, *, image: str, region: str) -> list[accelerators.Finding]:
    """Check the machines for a region and return the warnings.

    Raises:
        UserError: Vertex AI would refuse the job; the message has the reasons and the nearest valid choices.
    """
    findings = accelerators.check_worker_pools(
        machines.worker_pool_specs(image=image, args=[]),
        region=region,
        scheduling_strategy=machines.scheduling_strategy,
        timeout_seconds=machines.timeout_seconds,
        restart_job_on_worker_restart=machines.restart_job_on_worker_restart,
    )
    # Another placeholder, such as your-project, is an error: a user who names an image wants it to run.
    rules = {"placeholder-image"} if image != PLACEHOLDER_IMAGE else set()
    errors = [finding for finding in findings if finding.severity == "error" or finding.rule in rules]
    if errors:
        raise UserError(sentences(errors))
    if machines.accelerator_type in _BEYOND_THE_BUILD:
        findings.append(_beyond_the_build(machines.accelerator_type, image))
    # compile.py itself explains how far a file without an image can be used.
    return [finding for finding in findings if image != PLACEHOLDER_IMAGE or finding.rule != "placeholder-image"]


def _beyond_the_build(accelerator_type: str, image: str) -> accelerators.Finding:
    """Return the warning for an image of the user's own.

    Raises:
        UserError: The training job would run this project's own image.
    """
    message = f"{accelerator_type}: {_BEYOND_THE_BUILD[accelerator_type]}"
    if image == PLACEHOLDER_IMAGE:
        raise UserError(f"{message}; choose e.g. NVIDIA_L4 or NVIDIA_H100_80GB, or give an --image that supports it")
    return accelerators.Finding(
        rule="training-image",
        severity="warning",
        path="worker_pool_specs[0].machine_spec.accelerator_type",
        message=f"{message}; make sure that your image supports it",
    )
