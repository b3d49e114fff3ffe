"""The machines that a pipeline will request for training and deployment, and the quotas that they count against."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from components.train.fallbacks import Candidate, candidates
from components.train.machines import Machines
from components.values import machines_in, replicas_in
from localvertex._base.compiled.reader import read_pipeline
from localvertex.machines import load_catalogue
from localvertex.machines.catalogue.quota import MachineRequest, quota_metrics
from localvertex.machines.job.values import is_known, mapping
from localvertex.machines.pipeline.graph import Graph, Step
from localvertex.machines.pipeline.payload import build
from pipelines.vertex import Location

_UNKNOWN = "machines are known only at run time"


def plan_lines(job: dict[str, Any], location: Location) -> list[str]:
    """Return one line per machine type and per quota of the custom jobs of a pipeline, and its deployments.

    Args:
        job: The PipelineJob; its parameters select the machines.
        location: Its region has the quotas.
    """
    pipeline = read_pipeline(job["pipelineSpec"])
    steps = list(Graph(pipeline=pipeline, parameters=job["runtimeConfig"]["parameterValues"]).steps())
    training = [line for step in steps for line in _training_lines(step, steps, location)]
    # Two branches of the graph deploy, one of which runs.
    return [*training, *dict.fromkeys(line for step in steps for line in _deployment_lines(step, location))]


def _training_lines(step: Step, steps: list[Step], location: Location) -> Iterator[str]:
    """Yield the machines of a step that runs a custom job, their quotas, and a warning where new projects have none."""
    if "candidates" in step.inputs and "worker_pool_specs" in step.inputs:
        for index, candidate in enumerate(_candidates(step, location)):
            pools, name = _requests(candidate.machines.worker_pool_specs(image="", args=[])), step.name
            strategy = candidate.machines.scheduling_strategy
            yield from _requested(
                pools, strategy, candidate.region, name=f"{name}, fallback {index}" if index else name
            )
        return
    payload = build(step) if step.is_google_cloud and step.argument("--type") == "CustomJob" else None
    if payload is None:
        return
    spec = mapping(payload.job.get("job_spec"))
    given = mapping(spec.get("scheduling")).get("strategy")
    strategy = given if isinstance(given, str) and given else "STANDARD"
    pools = _requests(spec.get("worker_pool_specs")) or _planned_machines(steps)
    yield from _requested(pools, strategy, location.region, name=step.name)


def _requested(pools: list[MachineRequest], strategy: str, region: str, *, name: str) -> Iterator[str]:
    catalogue = load_catalogue()
    if not pools:
        yield f"{name}: {_UNKNOWN}, {strategy}"
    for pool in pools:
        gpus = f"with {pool.accelerator_count} x {pool.accelerator_type}" if pool.accelerator_type else "without GPUs"
        each = " each" if pool.replica_count > 1 else ""
        yield f"{name}: {pool.replica_count} x {pool.machine_type} {gpus}{each}, {strategy}"
    for metric, units in quota_metrics(pools, scheduling_strategy=strategy, catalogue=catalogue).items():
        yield f"  quota in {region}: {units:g} of {metric}"
    for kind in dict.fromkeys(pool.accelerator_type for pool in pools):
        entry = catalogue.regions.get((kind, region))
        if strategy == "STANDARD" and entry and entry.default_quota == "0":
            yield f"  new projects have a quota of 0 {kind} there: request an increase first"


def _candidates(step: Step, location: Location) -> list[Candidate]:
    """Return the machines on which a step with fallbacks may train."""
    entries = [{name: step.fill(value) for name, value in entry.items()} for entry in step.inputs["candidates"].value]
    known = all(is_known(value) for entry in entries for value in entry.values())
    settings = mapping(step.inputs["settings"].value)
    return candidates(entries, settings, region=location.region) if known else []


def _deployment_lines(step: Step, location: Location) -> Iterator[str]:
    """Yield the requests of this project's step `deploy`, which cost money."""
    values = {name: held.value for name, held in step.inputs.items() if name.startswith("deploy_")}
    name = values.get("deploy_endpoint")
    # `record` also has the endpoint, and the steps that check the machines have the machines.
    if not name or not {"registered_version", "deploy_machine_type"} <= step.inputs.keys():
        return
    shown = repr(name) if is_known(name) else "known only at run time"
    machines = replicas_in(values) if all(map(is_known, values.values())) else _UNKNOWN
    yield f"{step.name}: a new champion is deployed on {machines}, and gets all traffic after a live prediction"
    yield f"  endpoint {shown} in {location.region}: created if it does not exist; its old version is undeployed"
    yield "  it costs money as long as it is deployed, even after the run"


def _requests(pools: Any) -> list[MachineRequest]:
    """Return the machines of worker pools; none if a part of them is known only at run time."""
    found = []
    for pool in filter(None, pools if isinstance(pools, list) else ()):
        machine, replicas = mapping(pool.get("machine_spec")), pool.get("replica_count", 1)
        if not is_known(machine.get("machine_type")) or not all(map(is_known, (*machine.values(), replicas))):
            return []
        found.append(
            MachineRequest(
                machine_type=machine["machine_type"],
                accelerator_type=machine.get("accelerator_type", ""),
                accelerator_count=int(machine.get("accelerator_count", 0)),
                replica_count=int(replicas),
            )
        )
    return found


def _planned_machines(steps: list[Step]) -> list[MachineRequest]:
    """Return the machines that the step `plan` will request; none if there is no such step."""
    names = {field.name for field in fields(Machines)}
    for step in steps:
        if "replica_count" in step.inputs and not step.is_google_cloud:
            values = {name: held.value for name, held in step.inputs.items() if name in names}
            machines = machines_in(values) if all(map(is_known, values.values())) else None
            return _requests(machines.worker_pool_specs(image="", args=[])) if machines else []
    return []
