"""Custom jobs, deployments and batch predictions, checked as far as they are known.

Values that depend on the run itself are checked when the job starts.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Any

from accelerators import load_catalogue
from accelerators.job.finding import Finding
from accelerators.job.shape import Reading
from accelerators.job.values import RuntimeValue
from accelerators.pipeline.graph import Graph, Step
from accelerators.pipeline.payload import Payload, build
from accelerators.rules import prediction
from accelerators.rules.rules import check_job
from localvertex.errors import TaskFailed
from localvertex.executors.custom_job import CustomJobExecutor, launcher_job
from localvertex.executors.google_cloud.batch_predict import BatchPredictExecutor
from localvertex.executors.google_cloud.model_deploy import ModelDeployExecutor
from localvertex.executors.launcher import without_empty
from localvertex.jobs.job import missing_command
from localvertex_base.compiled.spec import Pipeline
from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.parameters import restore_integers

_POOLS = "job_spec.worker_pool_specs"


def refusals(
    pipeline: Pipeline,
    values: Mapping[str, Any],
    *,
    region: str,
    command_prefixes: Mapping[str, tuple[str, ...]],
    has_images: bool,
) -> list[str]:
    """Return each reason for which the service or this machine would refuse a job, with its path.

    Args:
        pipeline: The pipeline, which has been checked.
        values: The values of its parameters.
        region: The region of the run.
        command_prefixes: Command prefix to use instead of a container image, by image.
        has_images: Whether containers run in their own images.
    """
    custom_job, deployment = CustomJobExecutor().accepts, ModelDeployExecutor().accepts
    batch = BatchPredictExecutor().accepts
    checked = (custom_job, deployment, batch)
    if not any(accepts(each) for each in pipeline.executors.values() for accepts in checked):
        return []
    given = {name: value for name, value in values.items() if value is not None}
    found: list[str] = []
    try:
        # A condition may leave out the item that would be refused.
        for step in Graph(pipeline=pipeline, parameters=given, unfolds_loops=False).steps():
            if custom_job(step.container):
                found += _of_custom_job(step, region, command_prefixes, has_images)
            elif deployment(step.container) and (payload := build(step)):
                found += _of_prediction(payload, "deployed_model.dedicated_resources", prediction.ONLINE, region)
            elif batch(step.container) and (payload := build(step)):
                found += _of_prediction(payload, "dedicated_resources", prediction.BATCH, region)
    except UserError as error:
        return [str(error)]
    return list(dict.fromkeys(found))


def _of_custom_job(
    step: Step, region: str, command_prefixes: Mapping[str, tuple[str, ...]], has_images: bool
) -> Iterator[str]:
    payload = build(step)
    if payload is None:
        yield f"{step.container.path}.args: the payload of {step.name!r} is not a JSON object"
        return
    _forget_planned(payload)
    try:
        job = launcher_job(payload.job, step.container)
    except TaskFailed as error:
        yield f"{step.path}: {error}"
        return
    reading = Reading(lenient=True, compiled=True)
    check_job(job, reading, region=payload.region or region, catalogue=load_catalogue(), today=date.today())
    yield from _errors(payload, reading.findings)
    spec = job.get("job_spec")
    pools = spec.get("worker_pool_specs") if isinstance(spec, dict) else None
    for index, pool in enumerate(pools if isinstance(pools, list) else []):
        if _is_known(pool) and (problem := missing_command(pool, command_prefixes, has_images=has_images)):
            yield f"{_path(payload, f'{_POOLS}[{index}].container_spec')}: {problem}"


def _forget_planned(payload: Payload) -> None:
    """Remove the machines that a step of the pipeline is assumed to plan: it may plan others."""
    pools = payload.origins.get(_POOLS)
    spec = payload.job.get("job_spec")
    if pools is not None and isinstance(pools.value, RuntimeValue) and isinstance(spec, dict):
        spec["worker_pool_specs"] = pools.value


def _is_known(pool: Any) -> bool:
    """Return whether the command of a pool is in the file."""
    container = pool.get("container_spec") if isinstance(pool, dict) else None
    if not isinstance(container, dict):
        return False
    return not any(isinstance(container.get(name), RuntimeValue) for name in ("command", "image_uri"))


def _of_prediction(payload: Payload, path: str, kind: str, region: str) -> Iterator[str]:
    resources: Any = payload.job
    for name in path.split("."):
        resources = resources.get(name) if isinstance(resources, dict) else None
    given = without_empty(resources) if isinstance(resources, dict) else {}
    # Without a machine type, the service chooses the machines.
    if given.get("machine_spec", {}).get("machine_type"):
        reading, where = Reading(lenient=True, compiled=True), payload.region or region
        values = {name: restore_integers(value) for name, value in given.items()}
        findings = prediction.check_resources(values, reading, kind=kind, path=path, region=where)
        yield from _errors(payload, findings)


def _errors(payload: Payload, findings: Iterable[Finding]) -> Iterator[str]:
    for finding in findings:
        if finding.severity == "error":
            yield f"{_path(payload, finding.path)}: {finding.message}{finding.nearest}"


def _path(payload: Payload, path: str) -> str:
    """Return where the user has written a part of the job."""
    return payload.path_in_file(path).replace("runtimeConfig.parameterValues.", "parameter ", 1)
