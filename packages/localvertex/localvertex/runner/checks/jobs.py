"""Custom and tuning jobs, deployments and batch predictions, checked as far as they are known.

Values that depend on the run itself are checked when the job starts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from typing import Any

from accelerators.job.finding import Finding
from accelerators.job.shape import Reading
from accelerators.job.values import RuntimeValue
from accelerators.pipeline.graph import Graph, Step
from accelerators.pipeline.payload import Payload, build
from accelerators.rules import prediction
from accelerators.rules.rules import check_job, check_spec
from localvertex.errors import TaskFailed
from localvertex.executors.custom_job import CustomJobExecutor, launcher_job
from localvertex.executors.google_cloud.batch_predict import BatchPredictExecutor
from localvertex.executors.google_cloud.model_deploy import ModelDeployExecutor
from localvertex.executors.google_cloud.tuning_job import TuningJobExecutor
from localvertex.executors.launcher import without_empty
from localvertex.jobs.job import missing_command
from localvertex.jobs.tuning.job import COUNTS, read_counts
from localvertex.jobs.tuning.study import read_study
from localvertex.values.arguments import CommandPrefixes
from localvertex_base.compiled.spec import Pipeline
from localvertex_base.userinput.errors import UserError
from localvertex_base.userinput.parameters import restore_integers

_POOLS = "job_spec.worker_pool_specs"
_STUDY, _TRIAL = "study_spec", "trial_job_spec"


def refusals(
    pipeline: Pipeline,
    values: Mapping[str, Any],
    *,
    region: str,
    command_prefixes: CommandPrefixes,
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
    custom_job, tuning_job = CustomJobExecutor().accepts, TuningJobExecutor().accepts
    deployment, batch = ModelDeployExecutor().accepts, BatchPredictExecutor().accepts
    checked = (custom_job, tuning_job, deployment, batch)
    if not any(accepts(each) for each in pipeline.executors.values() for accepts in checked):
        return []
    given = {name: value for name, value in values.items() if value is not None}
    found: list[str] = []
    try:
        # A condition may leave out the item that would be refused.
        for step in Graph(pipeline=pipeline, parameters=given, unfolds_loops=False).steps():
            if custom_job(step.container):
                found += _of_custom_job(step, region, command_prefixes, has_images)
            elif tuning_job(step.container) and (payload := build(step)):
                found += _of_tuning_job(payload, region)
            elif deployment(step.container) and (payload := build(step)):
                found += _of_prediction(payload, "deployed_model.dedicated_resources", prediction.ONLINE, region)
            elif batch(step.container) and (payload := build(step)):
                found += _of_prediction(payload, "dedicated_resources", prediction.BATCH, region)
    except UserError as error:
        return [str(error)]
    return list(dict.fromkeys(found))


def _of_custom_job(step: Step, region: str, command_prefixes: CommandPrefixes, has_images: bool) -> Iterator[str]:
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
    reading = Reading()
    check_job(job, reading, region=payload.region or region, today=date.today())
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


def _of_tuning_job(payload: Payload, region: str) -> Iterator[str]:
    job = {name: restore_integers(value) for name, value in without_empty(payload.job).items()}
    if not _has_runtime_value(job.get(_STUDY)):
        yield from _reason(payload, lambda: read_study(job.get(_STUDY, {})))
    if not any(isinstance(job.get(name), RuntimeValue) for name in COUNTS):
        yield from _reason(payload, lambda: read_counts(job))
    reading = Reading()
    fields = reading.message(job.get(_TRIAL, {}), "CustomJobSpec", _TRIAL)
    where = payload.region or region
    check_spec(fields, reading, region=where, today=date.today(), prefix=f"{_TRIAL}.")
    yield from _errors(payload, reading.findings)


def _of_prediction(payload: Payload, path: str, kind: str, region: str) -> Iterator[str]:
    resources: Any = payload.job
    for name in path.split("."):
        resources = resources.get(name) if isinstance(resources, dict) else None
    given = without_empty(resources) if isinstance(resources, dict) else {}
    # Without a machine type, the service chooses the machines.
    if given.get("machine_spec", {}).get("machine_type"):
        reading, where = Reading(), payload.region or region
        values = {name: restore_integers(value) for name, value in given.items()}
        findings = prediction.check_resources(values, reading, kind=kind, path=path, region=where)
        yield from _errors(payload, findings)


def _reason(payload: Payload, read: Callable[[], object]) -> Iterator[str]:
    """Yield why a part of the job cannot be read, with its path in the file."""
    try:
        read()
    except UserError as error:
        path, separator, text = str(error).partition(": ")
        yield f"{_path(payload, path)}{separator}{text}"


def _has_runtime_value(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_runtime_value, value.values()))
    if isinstance(value, list):
        return any(map(_has_runtime_value, value))
    return isinstance(value, RuntimeValue)


def _errors(payload: Payload, findings: Iterable[Finding]) -> Iterator[str]:
    for finding in findings:
        if finding.severity == "error":
            yield f"{_path(payload, finding.path)}: {finding.message}{finding.nearest}"


def _path(payload: Payload, path: str) -> str:
    """Return where the user has written a part of the job."""
    return payload.path_in_file(path).replace("runtimeConfig.parameterValues.", "parameter ", 1)
