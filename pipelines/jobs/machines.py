"""The machines that a pipeline will request, and the quotas that they count against."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from accelerators import Catalogue, load_catalogue
from accelerators.catalogue.quota import MachineRequest, quota_metrics
from accelerators.job.values import is_known, mapping
from accelerators.pipeline.graph import Graph, Step
from accelerators.pipeline.payload import build
from components.train.machines import Machines
from components.values import machines_in
from localvertex_base.compiled.reader import read_pipeline
from localvertex_base.userinput.spelling import join_or
from pipelines.jobs.prediction import prediction_lines
from pipelines.vertex import Location

_DEFAULT_MACHINE = "Vertex AI Pipelines' default machine (e2-standard-4)"


@dataclass(frozen=True, kw_only=True)
class _TrainingStep:
    """A step that runs a custom job."""

    name: str
    scheduling_strategy: str
    pools: tuple[MachineRequest, ...]
    """Empty if they are known only at run time."""


@dataclass(frozen=True, kw_only=True)
class _StepRequest:
    """Resources that an ordinary step requests; the pipelines choose the machine."""

    limits: tuple[str, ...] = ()
    kind: str = ""
    count: int = 0

    def __str__(self) -> str:
        """Return e.g. `a machine with 16 CPUs and 60 GB`."""
        gpus = (f"{self.count} x {self.kind}",) if self.count else ()
        return f"a machine with {join_or((*self.limits, *gpus), 'and')}" if self.limits or gpus else _DEFAULT_MACHINE


def plan_lines(job: dict[str, Any], location: Location) -> list[str]:
    """Return one line per machine type and per quota of a pipeline job.

    Args:
        job: The PipelineJob; its parameters select the machines.
        location: Its region has the quotas.
    """
    catalogue = load_catalogue()
    pipeline = read_pipeline(job["pipelineSpec"])
    steps = list(Graph(pipeline=pipeline, parameters=job["runtimeConfig"]["parameterValues"]).steps())
    training_steps = list(_training_steps(steps))
    lines = _step_lines([step for step in steps if not step.is_google_cloud], location, catalogue)
    for training in training_steps:
        lines += [f"{training.name}: {text}, {training.scheduling_strategy}" for text in _pools(training)]
        lines += _quota_lines(training, location, catalogue)
    # Two branches of the graph deploy, one of which runs.
    return [*lines, *dict.fromkeys(prediction_lines(steps, location))]


def _step_lines(steps: list[Step], location: Location, catalogue: Catalogue) -> list[str]:
    """Return one line per machine of ordinary steps, and the quotas that the accelerators of a step count against."""
    requests: dict[_StepRequest, list[str]] = {}
    for step in steps:
        requests.setdefault(_step_request(step), []).append(step.name)
    lines = []
    for request, names in requests.items():
        lines.append(f"{', '.join(dict.fromkeys(names))}: {request}")
        machine = MachineRequest(machine_type="", accelerator_type=request.kind, accelerator_count=request.count)
        lines += _quota_lines(
            _TrainingStep(name="", scheduling_strategy="STANDARD", pools=(machine,)), location, catalogue
        )
    return lines


def _step_request(step: Step) -> _StepRequest:
    """Return the values in the file, without those known only at run time."""
    resources = step.container.resources
    limits = [(resources.get("cpuLimit"), "CPUs"), (resources.get("memoryLimit"), "GB")]
    accelerator = mapping(resources.get("accelerator"))
    kind, count = accelerator.get("type", ""), accelerator.get("count", 0)
    return _StepRequest(
        limits=tuple(f"{value:g} {unit}" for value, unit in limits if isinstance(value, (int, float)) and value),
        kind=kind,
        count=int(count) if str(count).isdecimal() else 0,
    )


def _quota_lines(training: _TrainingStep, location: Location, catalogue: Catalogue) -> list[str]:
    """Return one line per quota of a custom job, and a warning where new projects have none."""
    needed = quota_metrics(training.pools, scheduling_strategy=training.scheduling_strategy, catalogue=catalogue)
    entries = {
        pool.accelerator_type: catalogue.regions.get((pool.accelerator_type, location.region))
        for pool in training.pools
    }
    lines = [f"  quota in {location.region}: {units:g} of {metric}" for metric, units in needed.items()]
    if training.scheduling_strategy == "STANDARD":
        lines += [
            f"  new projects have a quota of {entry.default_quota} {accelerator} there: request an increase first"
            for accelerator, entry in entries.items()
            if entry and entry.default_quota == "0"
        ]
    return lines


def _training_steps(steps: list[Step]) -> Iterator[_TrainingStep]:
    """Yield the steps that run custom jobs, with the machines that follow from the parameters."""
    for step in steps:
        payload = build(step) if step.is_google_cloud and step.argument("--type") == "CustomJob" else None
        if payload is None:
            continue
        spec = mapping(payload.job.get("job_spec"))
        given = mapping(spec.get("scheduling")).get("strategy")
        scheduling_strategy = given if isinstance(given, str) and given else "STANDARD"
        pools = spec.get("worker_pool_specs")
        known = _requests(pools) or _planned_machines(steps)
        title = step.inputs.get("display_name")
        name = title.value if title and isinstance(title.value, str) and "{{" not in title.value else step.name
        yield _TrainingStep(name=name, scheduling_strategy=scheduling_strategy, pools=tuple(known))


def _requests(pools: Any) -> list[MachineRequest]:
    """Return the machines of worker pools; none if a part of them is known only at run time."""
    found = []
    for pool in filter(None, pools if isinstance(pools, list) else ()):
        machine, replicas = mapping(pool.get("machine_spec")), pool.get("replica_count", 1)
        values = [machine.get("machine_type"), machine.get("accelerator_type", ""), machine.get("accelerator_count", 0)]
        if not all(map(isinstance, (*values, replicas), (str, str, int | float, int | float))):
            return []
        found.append(
            MachineRequest(
                machine_type=values[0],
                accelerator_type=values[1],
                accelerator_count=int(values[2]),
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


def _pools(training: _TrainingStep) -> Iterator[str]:
    if not training.pools:
        yield "machines are known only at run time"
    for pool in training.pools:
        gpus = f"with {pool.accelerator_count} x {pool.accelerator_type}" if pool.accelerator_type else "without GPUs"
        yield f"{pool.replica_count} x {pool.machine_type} {gpus}{' each' if pool.replica_count > 1 else ''}"
