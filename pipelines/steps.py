"""The settings of this project's steps in the graph: container image, no caching, and machine.

The default machine of Vertex AI Pipelines is too small for some; what replaces it is checked before the compilation.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from components.train.machines import beyond_the_build
from localvertex._base.userinput.errors import UserError
from localvertex.machines import Finding
from localvertex.machines.job.finding import refuse
from localvertex.machines.pipeline.check import check_resources
from trainer.settings import COUNT, check_all, setting

_RUNTIME, _PYTHON = "_KFP_RUNTIME=true", "python3 -m kfp.dsl.executor_main"
_STARTS = f"{_RUNTIME} {_PYTHON}"
"""The end of the shell command that kfp 2.17 writes."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepMachines:
    """Settings of the compilation: a compiled file has no way to say "no GPU" at run time (decision 75)."""

    prepare_cpus: int = setting("CPUs of the step prepare; 0 for the default machine.", COUNT, default=0)
    prepare_memory_gb: int = setting("Memory of the step prepare; 0 for the default machine.", COUNT, default=0)
    evaluate_accelerator_type: str = setting("GPU type of evaluate and compare; empty for none.", default="")
    evaluate_accelerator_count: int = setting("GPUs of evaluate and compare.", COUNT, default=0)

    def __post_init__(self) -> None:
        """Refuse values that are wrong on any machine.

        Raises:
            UserError: A number is negative, or type and number of GPUs do not come together.
        """
        check_all(self)
        if bool(self.evaluate_accelerator_type) != bool(self.evaluate_accelerator_count):
            raise UserError(
                f"evaluate_accelerator_type is {self.evaluate_accelerator_type!r} and evaluate_accelerator_count is "
                f"{self.evaluate_accelerator_count}; give both or neither"
            )

    def descriptions(self) -> dict[str, str]:
        """Return step -> its machine in words; steps on the default machine are left out."""
        limits = [f"{self.prepare_cpus} CPUs"] * (self.prepare_cpus > 0)
        limits += [f"{self.prepare_memory_gb} GB"] * (self.prepare_memory_gb > 0)
        gpus = f"{self.evaluate_accelerator_count} x {self.evaluate_accelerator_type}"
        found = {"prepare": " and ".join(limits), "evaluate": gpus if self.evaluate_accelerator_count else ""}
        return {step: f"a machine with {text}" for step, text in found.items() if text}


def check_steps(machines: StepMachines, *, image: str, region: str) -> list[Finding]:
    """Check the machines of the steps for a region and return the warnings.

    Raises:
        UserError: Vertex AI would refuse a step; the message has the reasons and the nearest valid choices.
    """
    kind, count = machines.evaluate_accelerator_type, machines.evaluate_accelerator_count
    limits = {"cpuLimit": machines.prepare_cpus, "memoryLimit": machines.prepare_memory_gb}
    findings = check_resources("prepare", limits, region=region)
    findings += check_resources("evaluate", {"accelerator": {"type": kind, "count": count}}, region=region)
    refuse(findings)
    return findings + beyond_the_build(kind, image)


def step(task: Any, image: str) -> Any:
    """Return a task with its container image, and without caching."""
    # The service's cache compares the path of a folder, not its content: a cached step could miss changed data.
    # Not by kfp's setter, which reads the sources of its callers for a message: half of the time of `compile.py`.
    task.container_spec.image = image
    # As process 1 of a container, kfp's shell ignores the SIGTERM of a cancelled pipeline, and Python never gets it:
    # `prepare` could not cancel its Dataflow job, nor `train` its training jobs.
    task.container_spec.command = [
        word.replace(_STARTS, f"{_RUNTIME} exec {_PYTHON}") for word in task.container_spec.command
    ]
    return task.set_caching_options(False)


def inputs_of(component: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that a component has an input of the same name for."""
    return {name: value for name, value in values.items() if name in component.component_spec.inputs}


def with_resources(task: Any, machines: StepMachines) -> Any:
    """Return the task `prepare` with the CPUs and the memory that the settings ask for."""
    if machines.prepare_cpus:
        task.set_cpu_limit(str(machines.prepare_cpus))
    if machines.prepare_memory_gb:
        task.set_memory_limit(f"{machines.prepare_memory_gb}G")
    return task


def with_gpus(task: Any, machines: StepMachines) -> None:
    """Give a task that runs the model the GPUs that the settings ask for."""
    if machines.evaluate_accelerator_type:
        task.set_accelerator_type(machines.evaluate_accelerator_type)
        task.set_accelerator_limit(machines.evaluate_accelerator_count)
