"""Custom and tuning jobs, deployments and batch predictions, checked as far as they are known.

Values that depend on the run itself are checked when the job starts.
"""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from localvertex._base.compiled.spec import Pipeline
from localvertex._base.userinput.errors import UserError
from localvertex.containers.choice import Choice
from localvertex.containers.stand_ins import source_of
from localvertex.executors.custom_job import CustomJobExecutor
from localvertex.executors.google_cloud.batch_predict import BatchPredictExecutor
from localvertex.executors.google_cloud.model_deploy import ModelDeployExecutor
from localvertex.executors.google_cloud.tuning_job import TuningJobExecutor
from localvertex.jobs.job import missing_command
from localvertex.machines.job.values import RuntimeValue
from localvertex.machines.pipeline.check import check_payload
from localvertex.machines.pipeline.graph import Graph
from localvertex.machines.pipeline.payload import Payload, build

_POOLS = "job_spec.worker_pool_specs"


def refusals(
    pipeline: Pipeline,
    values: Mapping[str, Any],
    *,
    region: str,
    choice: Choice,
) -> list[str]:
    """Return each reason for which the service or this machine would refuse a job, with its path.

    Args:
        pipeline: The pipeline, which has been checked.
        values: The values of its parameters.
        region: The region of the run.
        choice: How containers run, and what the user has named in place of images.
    """
    custom_job = CustomJobExecutor().accepts
    checked = (custom_job, TuningJobExecutor().accepts, ModelDeployExecutor().accepts, BatchPredictExecutor().accepts)
    if not any(accepts(each) for each in pipeline.executors.values() for accepts in checked):
        return []
    given = {name: value for name, value in values.items() if value is not None}
    found: list[str] = []
    try:
        # A condition may leave out the item that would be refused.
        for step in Graph(pipeline=pipeline, parameters=given, unfolds_loops=False).steps():
            if not any(accepts(step.container) for accepts in checked):
                continue
            # A step that plans the machines may plan others than those that it is given.
            payload = build(step, assumes_plan=False)
            if payload is None:
                found.append(f"{step.container.path}.args: the payload of {step.name!r} is not a JSON object")
                continue
            findings = check_payload(payload, region=region, today=date.today(), runs_here=True)
            errors = [each for each in findings if each.severity == "error"]
            found += [f"{_shown(each.path)}: {each.message}{each.nearest}" for each in errors]
            if custom_job(step.container):
                found += _missing_commands(payload, choice, step.container.path)
    except UserError as error:
        return [str(error)]
    return list(dict.fromkeys(found))


def _missing_commands(payload: Payload, choice: Choice, step: str) -> Iterator[str]:
    spec = payload.job.get("job_spec")
    pools = spec.get("worker_pool_specs") if isinstance(spec, dict) else None
    for index, pool in enumerate(pools if isinstance(pools, list) else []):
        if _is_known(pool) and (problem := missing_command(pool, choice)):
            path = _path(payload, f"{_POOLS}[{index}].container_spec")
            container = pool["container_spec"]
            image, command = str(container.get("image_uri")), container.get("command") or ()
            yield source_of(f"{path}: {problem}", image, command, step)


def _is_known(pool: Any) -> bool:
    """Return whether the command of a pool is in the file."""
    container = pool.get("container_spec") if isinstance(pool, dict) else None
    if not isinstance(container, dict):
        return False
    return not any(isinstance(container.get(name), RuntimeValue) for name in ("command", "image_uri"))


def _path(payload: Payload, path: str) -> str:
    """Return where the user has written a part of the job."""
    return _shown(payload.path_in_file(path))


def _shown(path: str) -> str:
    return path.replace("runtimeConfig.parameterValues.", "parameter ", 1)
