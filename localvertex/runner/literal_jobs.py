"""Custom jobs that are in the file or in the parameters: checked before anything runs, as far as they are known."""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from accelerators import load_catalogue
from accelerators.job.shape import Reading
from accelerators.job.values import RuntimeValue
from accelerators.pipeline.graph import Graph, Step
from accelerators.pipeline.payload import Payload, build
from accelerators.rules.rules import check_job
from compiled.spec import Container, Pipeline
from localvertex.custom_jobs.job import missing_command
from localvertex.errors import TaskFailed
from localvertex.executors.custom_job import CustomJobExecutor, launched
from userinput.errors import UserError

_POOLS = "job_spec.worker_pool_specs"


def refusals(
    pipeline: Pipeline,
    values: Mapping[str, Any],
    *,
    region: str,
    command_prefixes: Mapping[str, tuple[str, ...]],
    has_images: bool,
) -> list[str]:
    """Return everything for which the service, or this machine, would refuse a custom job; each with its path.

    What depends on the run itself is checked when the job starts.

    Args:
        pipeline: The pipeline, which has been checked.
        values: The values of its parameters.
        region: The region of the run.
        command_prefixes: Command prefix to use instead of a container image, by image.
        has_images: Whether containers run in their own images.
    """
    if not any(CustomJobExecutor().accepts(each) for each in pipeline.executors.values()):
        return []
    given = {name: value for name, value in values.items() if value is not None}
    try:
        steps = [each for each in Graph(pipeline=pipeline, parameters=given).steps() if _is_job(each.container)]
    except UserError as error:
        return [str(error)]
    return list(dict.fromkeys(text for step in steps for text in _of_step(step, region, command_prefixes, has_images)))


def _is_job(container: Container) -> bool:
    return CustomJobExecutor().accepts(container)


def _of_step(
    step: Step, region: str, command_prefixes: Mapping[str, tuple[str, ...]], has_images: bool
) -> Iterator[str]:
    payload = build(step)
    if payload is None:
        yield f"{step.container.path}.args: the payload of {step.name!r} is not a JSON object"
        return
    _forget_planned(payload)
    try:
        job = launched(payload.job, step.container)
    except TaskFailed as error:
        yield f"{step.path}: {error}"
        return
    reading = Reading(lenient=True, compiled=True)
    check_job(job, reading, region=payload.region or region, catalogue=load_catalogue(), today=date.today())
    for finding in reading.findings:
        if finding.severity == "error":
            yield f"{_path(payload, finding.path)}: {finding.message}{finding.nearest}"
    spec = job.get("job_spec")
    pools = spec.get("worker_pool_specs") if isinstance(spec, dict) else None
    for index, pool in enumerate(pools if isinstance(pools, list) else []):
        if _is_known(pool) and (problem := missing_command(pool, command_prefixes, has_images=has_images)):
            yield f"{_path(payload, f'{_POOLS}[{index}].container_spec')}: {problem}"


def _forget_planned(payload: Payload) -> None:
    """Take away the machines that a step of the pipeline is assumed to plan: it may plan other ones."""
    pools = payload.origins.get(_POOLS)
    spec = payload.job.get("job_spec")
    if pools is not None and isinstance(pools.value, RuntimeValue) and isinstance(spec, dict):
        spec["worker_pool_specs"] = pools.value


def _path(payload: Payload, path: str) -> str:
    """Return where the user has written a part of the job."""
    return payload.path_in_file(path).replace("runtimeConfig.parameterValues.", "parameter ", 1)


def _is_known(pool: Any) -> bool:
    """Return whether the command of a pool is in the file."""
    container = pool.get("container_spec") if isinstance(pool, dict) else None
    if not isinstance(container, dict):
        return False
    return not any(isinstance(container.get(name), RuntimeValue) for name in ("command", "image_uri"))
