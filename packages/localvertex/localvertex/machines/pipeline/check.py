"""Check a compiled pipeline: the jobs of its steps, and the rules that only pipelines have."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from localvertex._base.compiled.reader import read_pipeline
from localvertex._base.compiled.spec import Container
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.spelling import quote, snake
from localvertex.machines.job.finding import Finding, Findings
from localvertex.machines.job.shape import Reading
from localvertex.machines.job.values import RuntimeValue, mapping
from localvertex.machines.pipeline.graph import Graph, Step
from localvertex.machines.pipeline.payload import MACHINE_FIELDS, Payload, build
from localvertex.machines.pipeline.rules import (
    check_artifacts,
    check_images,
    check_launcher,
    check_locations,
    check_plain_step,
    check_root,
)
from localvertex.machines.rules import prediction
from localvertex.machines.rules.rules import check_job
from localvertex.machines.studies.study import check_tuning_job

_PREDICTION = {
    "DeployModel": ("deployed_model.dedicated_resources", prediction.ONLINE),
    "BatchPredictionJob": ("dedicated_resources", prediction.BATCH),
}
"""Payload of a launcher -> the path of the machines in it, and their message."""

_TUNING = ("HyperparameterTuningJob", "HyperparameterTuningJobWithMetrics")

_JUDGED = ("worker_pool_specs", "scheduling", "location", "dedicated_resources")
"""The parts of a job that rules check; defaults of other parts need no note."""


@dataclass(kw_only=True)
class Examination(Findings):
    """Findings in a file, and further remarks for the user."""

    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Parts that were checked with defaults, or not at all; one line each."""
    what: str = ""
    """Kind of the file, e.g. "compiled pipeline"."""


def check_pipeline(
    pipeline_spec: JsonObject,
    *,
    region: str | None = None,
    today: date | None = None,
) -> list[Finding]:
    """Check a compiled kfp pipeline.

    Args:
        pipeline_spec: The parsed spec, or a PipelineJob that holds one in pipelineSpec.
        region: Region of the pipeline; jobs without a location run there.
        today: The date to compare end-of-support dates with; None for the current date.

    Returns:
        Findings; an empty list when nothing is wrong.

    Raises:
        UserError: Its dags unfold to too many tasks, or a component contains itself.
    """
    return examine_pipeline(pipeline_spec, region=region, today=today).findings


def examine_pipeline(document: JsonObject, *, region: str | None, today: date | None) -> Examination:
    """Check a pipeline spec or PipelineJob, and note what was checked with defaults."""
    pipeline, config = read_pipeline(document), mapping(document.get("runtimeConfig"))
    graph = Graph(pipeline=pipeline, parameters=mapping(config.get("parameterValues")))
    steps = list(graph.steps())
    seen = Examination(what="compiled pipeline")
    day = today or date.today()
    for step in steps:
        _check_step(step, seen, region or "", day)
    check_locations(steps, region or "", seen)
    check_images(steps, seen)
    check_artifacts(pipeline, graph, seen)
    check_root(pipeline.default_root, config, seen)
    # A dag that is used twice is walked twice, and usually gives the same findings twice.
    seen.findings, seen.notes = list(dict.fromkeys(seen.findings)), list(dict.fromkeys(seen.notes))
    return seen


def check_resources(name: str, resources: JsonObject, *, region: str) -> list[Finding]:
    """Check the machines that a step is going to request, before it is compiled.

    Args:
        name: Name of the step.
        resources: Resources as in a compiled file: cpuLimit, memoryLimit in GB, accelerator with type and count.
        region: Region of the pipeline.
    """
    container, seen = Container(image="", resources=resources), Examination()
    step = Step(name=name, path=name, container=container, inputs={}, given=frozenset(), is_cached=False)
    check_plain_step(step, region, date.today(), seen)
    return seen.findings


def _check_step(step: Step, seen: Examination, region: str, today: date) -> None:
    if not step.is_google_cloud:
        check_plain_step(step, region, today, seen)
        return
    kind = step.argument("--type")
    trains = kind in ("CustomJob", *_TUNING)
    check_launcher(step, seen, trains=trains)
    if not trains and kind not in _PREDICTION:
        return
    payload = build(step)
    if payload is None:
        message = f"the payload of step {step.name!r} is not understood; its machines were not checked"
        seen.warning("not-checked", step.path, message)
        return
    seen.findings += check_payload(payload, region=region, today=today)
    _note_defaults(payload, seen)


def check_payload(payload: Payload, *, region: str, today: date, runs_here: bool = False) -> list[Finding]:
    """Check the job that a launcher will send: a training, a tuning, a deployment or a batch prediction.

    Args:
        payload: The job.
        region: Region of the pipeline; empty if it is not known.
        today: The date to compare end-of-support dates with.
        runs_here: Whether the job is to run on this machine.

    Returns:
        Findings with their paths in the pipeline's file.
    """
    reading, kind, where = Reading(drops_empty=True), payload.step.argument("--type"), payload.region or region
    if kind in _PREDICTION:
        return _check_prediction(payload, kind, reading, where, today).findings
    if kind == "CustomJob":
        path = "job_spec"
        check_job(payload.job, reading, region=where, today=today, component=True)
    else:
        path = "trial_job_spec"
        check_job(payload.job.get(path, {}), reading, region=where, today=today, component=True, path=path)
        check_tuning_job(payload.job, reading, runs_here=runs_here)
    seen = _in_pipeline(reading.findings, payload, reading)
    _check_artifacts(payload, seen)
    _check_known(payload, f"{path}.worker_pool_specs", payload.job.get(path), seen)
    return seen.findings


def _check_prediction(payload: Payload, kind: str, reading: Reading, region: str, today: date) -> Examination:
    path, message = _PREDICTION[kind]
    resources: Any = payload.job
    for name in path.split("."):
        resources = _read(resources, name)
    machine = mapping(_read(resources, "machine_spec"))
    # Without a machine type, the service chooses the machines.
    if not machine.get("machine_type"):
        return Examination()
    # An unset number of a component is 0, and an unset name is empty.
    given = {name: value for name, value in mapping(resources).items() if value not in (0, "")}
    found = prediction.check_resources(
        given | {"machine_spec": {name: value for name, value in machine.items() if value not in (0, "")}},
        reading,
        kind=message,
        path=path,
        region=region,
        today=today,
    )
    seen = _in_pipeline(found, payload, reading)
    _check_machine(payload, f"{path}.machine_spec", machine, seen)
    return seen


def _in_pipeline(findings: Iterable[Finding], payload: Payload, reading: Reading) -> Examination:
    """Return the findings in a job with their paths in the pipeline's file."""
    paths = {"region": "location"}
    return Examination(
        findings=[
            replace(each, path=reading.as_written(payload.path_in_file(paths.get(each.path, each.path))))
            for each in findings
        ]
    )


def _check_artifacts(payload: Payload, seen: Findings) -> None:
    for path, held in payload.origins.items():
        if held.is_artifact:
            origin = held.value.origin if isinstance(held.value, RuntimeValue) else quote(held.value)
            message = (
                f"{origin} is an artifact; worker pools can only contain parameters: "
                "return its uri as text from a step, or make the step a component that takes the artifact"
            )
            seen.error("artifact-in-worker-pools", payload.path_in_file(path), message)


def _check_known(payload: Payload, path: str, spec: Any, seen: Findings) -> None:
    """Find what decides about machines and is known only at run time."""
    pools = mapping(spec).get("worker_pool_specs")
    _note_unknown(payload, path, "the worker pools", pools, seen)
    for index, pool in enumerate(pools if isinstance(pools, list) else []):
        at = f"{path}[{index}]"
        _note_unknown(payload, at, "a worker pool", pool, seen)
        _check_machine(payload, f"{at}.machine_spec", _read(pool, "machine_spec"), seen)


def _check_machine(payload: Payload, path: str, machine: Any, seen: Findings) -> None:
    _note_unknown(payload, path, "the machine", machine, seen)
    for name in MACHINE_FIELDS:
        _note_unknown(payload, f"{path}.{name}", name, _read(machine, name), seen)


def _note_unknown(payload: Payload, path: str, what: str, value: Any, seen: Findings) -> None:
    """Add a finding for a part of the job that only the running pipeline knows."""
    if isinstance(value, RuntimeValue):
        message = f"{what} of step {payload.step.name!r}: {value.origin}; it is known only at run time and not checked"
        seen.warning("not-checked", payload.path_in_file(path), message)


def _read(fields: Any, name: str) -> Any:
    """Return a field in snake_case or camelCase."""
    return next((value for key, value in mapping(fields).items() if snake(str(key)) == name), None)


def _note_defaults(payload: Payload, seen: Examination) -> None:
    used = {
        name: value.value
        for at, value in payload.origins.items()
        for name in value.default_of
        if not isinstance(value.value, (list, dict)) and any(part in at for part in _JUDGED)
    }
    if used:
        values = ", ".join(f"{name}={quote(value, 40)}" for name, value in used.items())
        seen.notes.append(f"step {payload.step.name!r}: checked with the defaults of the parameters {values}")
