"""Describe the deployments and predictions of a pipeline, which cost money."""

from collections.abc import Iterator
from typing import Any

from accelerators.job.values import is_known, mapping
from accelerators.pipeline.graph import Step
from accelerators.pipeline.payload import build
from components.values import replicas_in
from pipelines.vertex import Location

_UNKNOWN = "machines are known only at run time"


def prediction_lines(steps: list[Step], location: Location) -> Iterator[str]:
    """Yield one line per endpoint, deployment and batch prediction of the steps of a pipeline."""
    for step in steps:
        kind = step.argument("--type") if step.is_google_cloud else ""
        if "deploy_endpoint" in step.inputs and "registered_version" in step.inputs:
            yield from _own_deployment(step, location)
        elif kind == "DeployModel":
            machines = _machines(step, "deployed_model", first="min_replica_count")
            yield f"{step.name}: deploys a model on {machines}; it costs money until it is undeployed"
        elif kind == "BatchPredictionJob":
            machines = _machines(step, "", first="starting_replica_count")
            yield f"{step.name}: batch prediction on {machines}; it costs money while it runs"


def _own_deployment(step: Step, location: Location) -> Iterator[str]:
    values = {name: held.value for name, held in step.inputs.items() if name.startswith("deploy_")}
    name = values["deploy_endpoint"]
    if not name:
        return
    shown = repr(name) if is_known(name) else "known only at run time"
    machines = replicas_in(values) if all(map(is_known, values.values())) else _UNKNOWN
    yield f"{step.name}: a new champion is deployed on {machines}, and gets all traffic after a live prediction"
    yield f"  endpoint {shown} in {location.region}: created if it does not exist; its old version is undeployed"
    yield "  it costs money as long as it is deployed, also after the run"


def _machines(step: Step, within: str, *, first: str) -> str:
    """Return the machines of a payload in words, e.g. `1 to 3 x n1-standard-4`."""
    payload = build(step)
    job = mapping(payload.job if payload else {})
    resources = mapping((mapping(job.get(within)) if within else job).get("dedicated_resources"))
    machine = mapping(resources.get("machine_spec"))
    values: list[Any] = [machine.get(name) for name in ("machine_type", "accelerator_type", "accelerator_count")]
    counts = [resources.get(first), resources.get("max_replica_count")]
    if not values[0]:
        return "machines that the service chooses"
    if not all(value is None or isinstance(value, str | int | float) for value in (*values, *counts)):
        return _UNKNOWN
    gpus = f" with {values[2]:g} x {values[1]}" if values[1] and values[2] else ""
    numbers = dict.fromkeys(f"{count:g}" for count in counts if count)
    return f"{' to '.join(numbers) or '1'} x {values[0]}{gpus}"
