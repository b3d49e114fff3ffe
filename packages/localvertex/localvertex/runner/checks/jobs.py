"""Custom and tuning jobs, deployments and batch predictions, checked as far as they are known.

Values that depend on the run itself are checked when the job starts.
"""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from localvertex._base.compiled.spec import Pipeline
from localvertex._base.userinput.errors import UserError
from localvertex.containers.choice import Choice
from localvertex.containers.stand_ins import is_plain, source_of
from localvertex.executors.custom_job import CustomJobExecutor
from localvertex.executors.google_cloud.batch_predict import BatchPredictExecutor
from localvertex.executors.google_cloud.model_deploy import ModelDeployExecutor
from localvertex.executors.google_cloud.tuning_job import TuningJobExecutor
from localvertex.jobs.job import missing_command
from localvertex.machines.job.values import RuntimeValue
from localvertex.machines.pipeline.check import check_payload
from localvertex.machines.pipeline.graph import Graph
from localvertex.machines.pipeline.payload import Payload, build
from localvertex.runner.checks import base_images
from localvertex.values.repository import Repository

_POOLS = "job_spec.worker_pool_specs"


def refusals(
    pipeline: Pipeline,
    values: Mapping[str, Any],
    *,
    region: str,
    choice: Choice,
    repository: Repository,
) -> list[str]:
    """Return each reason for which the service or this machine would refuse a job, with its path.

    Args:
        pipeline: The pipeline, which has been checked.
        values: The values of its parameters.
        region: The region of the run.
        choice: How containers run, and what the user has named in place of images.
        repository: Names the packages of modules.
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
                found += _of_containers(payload, choice, step.container.path, repository)
    except UserError as error:
        return [str(error)]
    return list(dict.fromkeys(found))


def _of_containers(payload: Payload, choice: Choice, step: str, repository: Repository) -> Iterator[str]:
    """Yield the missing commands and modules of the pools, as far as the file contains them."""
    spec = payload.job.get("job_spec")
    pools = spec.get("worker_pool_specs") if isinstance(spec, dict) else None
    for index, pool in enumerate(pools if isinstance(pools, list) else []):
        container = pool.get("container_spec") if isinstance(pool, dict) else None
        if not isinstance(container, dict):
            continue
        known = {name: each for name, each in container.items() if not isinstance(each, RuntimeValue)}
        if {"command", "image_uri"} & (container.keys() - known):
            continue
        path, image = _path(payload, f"{_POOLS}[{index}].container_spec"), str(known.get("image_uri"))
        command, arguments = ([*map(str, known.get(name) or ())] for name in ("command", "args"))
        if problem := missing_command({"container_spec": known}, choice):
            yield source_of(f"{path}: {problem}", image, command and [*command, *arguments], step, repository)
            continue
        stand_in = choice.stand_ins.of(image, (*command, *arguments))
        finds_more = stand_in.packages or is_plain(image) or "PYTHONPATH" in str(known.get("env"))
        if not (finds_more or image in choice.command_prefixes):
            found = base_images.of_command([*stand_in.words(command, arguments)], stand_in, repository)
            yield from base_images.named(found, image, repository, path=path, step=step)


def _path(payload: Payload, path: str) -> str:
    """Return the path at which the user wrote a part of the job."""
    return _shown(payload.path_in_file(path))


def _shown(path: str) -> str:
    return path.replace("runtimeConfig.parameterValues.", "parameter ", 1)
