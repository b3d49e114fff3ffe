"""Rules that only pipelines need: locations, images, the pipeline root, and what is set on single steps."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from typing import Any

from accelerators.catalogue.catalogue import load_catalogue
from accelerators.job.finding import Finding
from accelerators.job.values import RuntimeValue, is_placeholder
from accelerators.pipeline.graph import Step, mapping
from accelerators.rules.job import Job
from accelerators.rules.machines import check_accelerator
from accelerators.rules.regions import check_region
from localvertex_base.compiled.spec import Container
from localvertex_base.userinput.spelling import join_or

_MAX_STEP_CPUS = 96
_MAX_STEP_MEMORY_GB = 624
"""Largest request of an ordinary step (page on machine types for pipelines); a larger one needs a custom job."""

_LIMITS = ("cpuLimit", "cpuRequest", "memoryLimit", "memoryRequest")
_RUNTIME_LIMITS = ("resourceCpuLimit", "resourceCpuRequest", "resourceMemoryLimit", "resourceMemoryRequest")


def check_locations(steps: Iterable[Step], region: str) -> list[Finding]:
    """Find Google Cloud components that fall back to their own fixed location, such as ModelUploadOp."""
    cloud = [step for step in steps if step.is_google_cloud]
    elsewhere = [region] if region else sorted({location for step in cloud if (location := _given_location(step))})
    return [finding for step in cloud for finding in _own_location(step, elsewhere)]


def _given_location(step: Step) -> str:
    value = step.inputs["location"].value if "location" in step.given else ""
    return value if isinstance(value, str) and "{{$" not in value else ""


def _own_location(step: Step, elsewhere: list[str]) -> list[Finding]:
    held = step.inputs.get("location")
    if held is None or "location" in step.given or not isinstance(held.value, str) or "{{$" in held.value:
        return []
    if held.value in elsewhere or not held.value:
        return []
    found = f"step {step.name!r} has no location and uses the component's default, {held.value}"
    advice = "give it the pipeline's location"
    message = f"{found}, while the pipeline is in {join_or(elsewhere)}; {advice}"
    if not elsewhere:
        message = f"{found}, wherever the pipeline runs; {advice}"
    return [
        Finding(
            rule="component-location",
            severity="error" if elsewhere else "warning",
            path=f"{step.path}.inputs.parameters",
            message=message,
            alternatives=tuple(f"location={location}" for location in elsewhere[:3]),
        )
    ]


def check_images(steps: Iterable[Step]) -> list[Finding]:
    """Find images that the user has to fill in; one finding per image."""
    paths: dict[str, list[str]] = defaultdict(list)
    for step in steps:
        container = step.container
        if is_placeholder(container.image) and container.path not in paths[container.image]:
            paths[container.image].append(container.path)
    return [
        Finding(
            rule="placeholder-image",
            severity="warning",
            path=f"{found[0]}.image",
            message=(
                f"{image!r} is a placeholder ({len(found)} step{'s' * (len(found) > 1)}); "
                "to run on Vertex AI, compile with the address of a pushed image"
            ),
        )
        for image, found in paths.items()
        if image.isprintable()
    ]


def check_root(default_root: str, config: dict[str, Any]) -> list[Finding]:
    """Find a pipeline without a root for its outputs.

    Args:
        default_root: The pipeline root that the file was compiled with; empty for none.
        config: The runtimeConfig of the PipelineJob; empty for a pipeline alone.
    """
    root = config.get("gcsOutputDirectory") or default_root
    if isinstance(root, str) and root.startswith("gs://") and not is_placeholder(root.removeprefix("gs://")):
        return []
    found = f"the pipeline root is {root!r}" if root else "the file has no pipeline root"
    message = f"{found}; give one when it is submitted, e.g. gs://my-bucket/pipelines, or compile with pipeline_root"
    return [Finding(rule="no-pipeline-root", severity="warning", path="defaultPipelineRoot", message=message)]


def check_launcher(step: Step, *, trains: bool) -> list[Finding]:
    """Check a Google Cloud component: what is set on its task reaches only the small launcher container."""
    findings = []
    resources, path = step.container.resources, step.container.path
    if resources.get("accelerator"):
        message = (
            f"set_accelerator_* on step {step.name!r} gives the GPU to its launcher and not to the job; "
            "put accelerator_type and accelerator_count into worker_pool_specs"
        )
        at = f"{path}.resources.accelerator"
        findings.append(Finding(rule="launcher-accelerator", severity="error", path=at, message=message))
    if any(resources.get(name) for name in (*_LIMITS, *_RUNTIME_LIMITS)):
        message = (
            f"cpu or memory limits on step {step.name!r} size its launcher and not the job; "
            "choose machine_type in worker_pool_specs"
        )
        at = f"{path}.resources"
        findings.append(Finding(rule="launcher-resources", severity="warning", path=at, message=message))
    if step.container.env:
        names = join_or(repr(name) for name in list(step.container.env)[:5])
        message = (
            f"set_env_variable on step {step.name!r} ({names}) reaches its launcher only; put env into container_spec"
        )
        findings.append(Finding(rule="launcher-environment", severity="warning", path=f"{path}.env", message=message))
    return findings + (_cached_training(step) if trains and step.is_cached else [])


def _cached_training(step: Step) -> list[Finding]:
    message = (
        f"step {step.name!r} trains, but its result may come from the cache, which ignores changes in the data "
        "or behind the image tag; call set_caching_options(False)"
    )
    path = f"{step.path}.cachingOptions"
    return [Finding(rule="training-cached", severity="warning", path=path, message=message)]


def check_resources(name: str, resources: dict[str, Any], *, region: str) -> list[Finding]:
    """Check what a step is going to ask for, before it is compiled.

    Args:
        name: Name of the step.
        resources: Resources as in a compiled file: cpuLimit, memoryLimit in GB, accelerator with type and count.
        region: Where the pipeline is to run.
    """
    step = Step(
        name=name,
        path=name,
        container=Container(image="", resources=resources),
        inputs={},
        given=frozenset(),
        is_cached=False,
    )
    return check_plain_step(step, region, date.today())


def check_plain_step(step: Step, region: str, today: date) -> list[Finding]:
    """Check accelerators and limits of a step that runs in its own container."""
    return _over_limits(step) + _step_accelerator(step, region, today)


def _over_limits(step: Step) -> list[Finding]:
    findings = []
    for name, limit, unit in (("cpuLimit", _MAX_STEP_CPUS, "CPUs"), ("memoryLimit", _MAX_STEP_MEMORY_GB, "GB")):
        requested = step.container.resources.get(name)
        if isinstance(requested, (int, float)) and requested > limit:
            found = f"{requested:g} {unit} for step {step.name!r}"
            message = f"{found}; a step may have at most {limit}: make it a custom job with a machine_type"
            path = f"{step.container.path}.resources.{name}"
            findings.append(Finding(rule="step-resources", severity="error", path=path, message=message))
    return findings


def _step_accelerator(step: Step, region: str, today: date) -> list[Finding]:
    requested = mapping(step.container.resources.get("accelerator"))
    path = f"{step.container.path}.resources.accelerator"
    kind = step.fill(requested.get("resourceType") or requested.get("type"))
    count = step.fill(requested.get("resourceCount") or requested.get("count"))
    unknown = next((value for value in (kind, count) if isinstance(value, RuntimeValue)), None)
    if unknown is not None:
        message = f"the accelerator of step {step.name!r}: {unknown.origin}; it is known only at run time, not checked"
        return [Finding(rule="not-checked", severity="warning", path=path, message=message)]
    if not isinstance(kind, str) or not kind:
        return []
    digits = str(int(count)) if isinstance(count, float) and count.is_integer() else str(count)
    number = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 6 else None
    machine = {"accelerator_type": kind} | ({} if number is None else {"accelerator_count": number})
    spec = {"worker_pool_specs": [{"machine_spec": machine}]}
    job = Job(spec=spec, region=region, today=today)
    check_accelerator(job, job.pools[0], path)
    check_region(job)
    valid = sorted({one for (_, name), counts in load_catalogue().counts.items() if name == kind for one in counts})
    if valid and number is not None and number not in valid:
        message = (
            f"{number} x {kind} on step {step.name!r}; no machine has that many, valid counts are {join_or(valid)}"
        )
        job.note("accelerator-count", "error", f"{path}.count", message, tuple(str(one) for one in valid))
    # The rules of jobs report paths in a job; here each is the path of the accelerator.
    return [f if f.path.startswith(path) else replace(f, path=path) for f in job.findings]
