"""The job that a Google Cloud component will send, rebuilt from its compiled step."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from localvertex._base.compiled.parameters import restore_integers
from localvertex._base.compiled.payload import INPUT_PARAMETER, decode
from localvertex._base.json_object import JsonObject
from localvertex.machines.job.values import RuntimeValue, mapping
from localvertex.machines.pipeline.graph import Step, Value, as_json

_LAST = re.compile(r"(^|\.)[^.\[]+$|\[\d+\]$")
_LOCATION = "{{$.pipeline_google_cloud_location}}"

MACHINE_FIELDS = ("machine_type", "accelerator_type", "accelerator_count")
"""Inputs that determine a machine; a step with one of them is assumed to plan the machines."""


@dataclass(kw_only=True)
class Payload:
    """A job, and for every part of it where it comes from.

    Attributes:
        job: Fields of a CustomJob or HyperparameterTuningJob; parts that are not in the file are a RuntimeValue.
        region: Region of the job; empty when it is the pipeline's own.
        origins: Path in the job -> the value at that path.
    """

    step: Step
    job: JsonObject = field(default_factory=dict)
    region: str = ""
    origins: dict[str, Value] = field(default_factory=dict)

    def path_in_file(self, path: str) -> str:
        """Return the path in the pipeline file of a path in the job."""
        for head in _upwards(path):
            if head in self.origins:
                return self.origins[head].path + path[len(head) :]
        return f"{self.step.container.path}.args(--payload).{path}"


def _upwards(path: str) -> Iterator[str]:
    """Yield a[0].b, a[0] and a for "a[0].b"."""
    while path:
        yield path
        path = _LAST.sub("", path)


def build(step: Step, *, assumes_plan: bool = True) -> Payload | None:
    """Return the job of a step, or None if its payload is not understood.

    Args:
        step: The step.
        assumes_plan: Whether pools from a step that is given a machine are taken to be of this machine.
    """
    try:
        template = decode(step.argument("--payload"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(template, dict):
        return None
    payload = Payload(step=step)
    payload.job = mapping(_fill(template, payload, ""))
    location = _fill(step.argument("--location"), payload, "location")
    payload.region = location if isinstance(location, str) else ""
    if assumes_plan:
        _add_planned_pools(payload)
    return payload


def _fill(value: Any, payload: Payload, path: str, depth: int = 0) -> Any:
    if isinstance(value, str):
        return _text(value, payload, path, depth)
    if isinstance(value, list):
        return [_fill(item, payload, f"{path}[{index}]", depth) for index, item in enumerate(value)]
    if isinstance(value, dict):
        return {key: _fill(item, payload, f"{path}.{key}" if path else str(key), depth) for key, item in value.items()}
    return value


def _text(text: str, payload: Payload, path: str, depth: int) -> Any:
    if "{{$" not in text:
        return text
    whole = INPUT_PARAMETER.fullmatch(text)
    if whole:
        value = _input(whole.group(1), payload, path, depth)
        # Within the value of another input it is in quotes, as in the arguments of a component wrapped as a job.
        return json.dumps(restore_integers(value)) if depth and isinstance(value, int | float) else value
    parts = [_input(name, payload, path, depth) for name in INPUT_PARAMETER.findall(text)]
    if len(parts) > 50 or any(isinstance(part, (RuntimeValue, list, dict)) or part is None for part in parts):
        return RuntimeValue(origin="text with a value of the running pipeline")
    filled = iter(parts)
    joined = INPUT_PARAMETER.sub(lambda _: str(next(filled)), text)
    origin = "the pipeline's own location" if joined == _LOCATION else "the running pipeline"
    return RuntimeValue(origin=origin) if "{{$" in joined else joined


def _input(name: str, payload: Payload, path: str, depth: int) -> Any:
    held = payload.step.inputs.get(name)
    if held is None or depth > 3:
        return None  # an optional input without a value; kfp leaves it out
    payload.origins[path] = held
    # Older components take lists and mappings as JSON text.
    return _fill(as_json(held.value), payload, path, depth + 1)


def _add_planned_pools(payload: Payload) -> None:
    """Fill in the machine that a planning step is given, where the job has that step's output as its pools."""
    spec = payload.job.get("job_spec")
    pools = mapping(spec).get("worker_pool_specs")
    if not isinstance(pools, RuntimeValue) or not any(name in pools.step_inputs for name in MACHINE_FIELDS):
        return
    path = "job_spec.worker_pool_specs"
    machine: JsonObject = {}
    for name in MACHINE_FIELDS:
        held = pools.step_inputs.get(name, Value(value=RuntimeValue(origin="the planning step"), path=pools.producer))
        # A parameter of "" or 0 means no accelerator.
        if held.value not in ("", 0):
            machine[name] = held.value
        payload.origins[f"{path}[0].machine_spec.{name}"] = held
    later = RuntimeValue(origin=pools.origin)
    mapping(spec)["worker_pool_specs"] = [
        {"machine_spec": machine, "replica_count": later, "container_spec": {"image_uri": later}}
    ]
    payload.origins[f"{path}[0]"] = Value(value=None, path=f"{pools.producer}.inputs.parameters")
    payload.origins[f"{path}[0].machine_spec"] = payload.origins[f"{path}[0]"]
