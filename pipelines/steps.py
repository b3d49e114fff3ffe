"""The settings of this project's steps in the graph: container image, no caching, and machine."""

from typing import Any

from training_job.step_machines import StepMachines


def step(task: Any, image: str) -> Any:
    """Return a task with its container image, and without caching."""
    # The service's cache compares the path of a folder, not its content: a cached step could miss changed data.
    return task.set_container_image(image).set_caching_options(False)


def sized(task: Any, machines: StepMachines) -> Any:
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
