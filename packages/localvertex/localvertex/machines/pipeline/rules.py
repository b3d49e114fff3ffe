"""Rules that only pipelines need: locations, images, the pipeline root, and what is set on single steps."""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from datetime import date

from localvertex._base.compiled.spec import Component, Pipeline
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput.spelling import join_or
from localvertex.machines.catalogue.catalogue import load_catalogue
from localvertex.machines.job.finding import Findings
from localvertex.machines.job.values import RuntimeValue, is_placeholder, mapping
from localvertex.machines.pipeline.graph import Graph, Step
from localvertex.machines.rules.job import Job
from localvertex.machines.rules.machines import check_accelerator
from localvertex.machines.rules.regions import check_region

_MAX_STEP_CPUS = 96
_MAX_STEP_MEMORY_GB = 624
"""Largest request of an ordinary step (page on machine types for pipelines); a larger one needs a custom job."""

_MOVING = re.compile(r"^(?!\{\{)(?:[^@]*:latest|[^@:]*(?::\d+/[^@:]*)?)$")
"""An address with the tag latest, or without tag and digest; a host may have a port."""

_MIN_STEP_MEMORY_GB = 0.001

_TITLE = re.compile(r"[a-z][a-z0-9-_]{2,20}[.][A-Z][a-zA-Z0-9-_]{2,49}")
"""The schema titles of Vertex AI Metadata, from the service's own message (tfx-addons issue 259)."""

_MAX_COLLECTED = 100
"""Artifacts of one input, from the service's own message (kubeflow issue 7513)."""

_LIMITS = (
    "cpuLimit cpuRequest memoryLimit memoryRequest "
    "resourceCpuLimit resourceCpuRequest resourceMemoryLimit resourceMemoryRequest"
).split()


def check_locations(steps: Iterable[Step], region: str, seen: Findings) -> None:
    """Find Google Cloud components that fall back to their own fixed location, such as ModelUploadOp."""
    cloud = [step for step in steps if step.is_google_cloud]
    elsewhere = [region] if region else sorted({_location(step) for step in cloud if "location" in step.given} - {""})
    for step in cloud:
        default = "" if "location" in step.given else _location(step)
        if default in ("", *elsewhere):
            continue
        where = f"while the pipeline is in {join_or(elsewhere)}" if elsewhere else "wherever the pipeline runs"
        message = (
            f"step {step.name!r} has no location and uses the component's default, {default}, {where}; "
            "give it the pipeline's location"
        )
        note = seen.error if elsewhere else seen.warning
        alternatives = tuple(f"location={location}" for location in elsewhere[:3])
        note("component-location", f"{step.path}.inputs.parameters", message, alternatives)


def _location(step: Step) -> str:
    """Return the location of a component; empty if it has none or only the running pipeline knows it."""
    value = step.inputs["location"].value if "location" in step.inputs else ""
    return value if isinstance(value, str) and "{{$" not in value else ""


def check_images(steps: Iterable[Step], seen: Findings) -> None:
    """Find images that the user has to fill in, and cached steps whose image may move; one finding per image."""
    paths: dict[str, list[str]] = defaultdict(list)
    moving: dict[str, list[Step]] = defaultdict(list)
    for step in steps:
        container = step.container
        if is_placeholder(container.image):
            if container.path not in paths[container.image]:
                paths[container.image].append(container.path)
        elif step.is_cached and _MOVING.search(container.image):
            moving[container.image].append(step)
    for image, cached in moving.items():
        message = (
            f"{image!r} may be another image tomorrow, and step {cached[0].name!r} would still come from the cache (kfp"
            " issue 13862); give the image by tag or digest, or call set_caching_options(False)"
        )
        seen.warning("moving-tag", f"{cached[0].container.path}.image", message)
    for image, found in paths.items():
        message = (
            f"{image!r} is a placeholder ({len(found)} step{'s' * (len(found) > 1)}); "
            "to run on Vertex AI, compile with the address of a pushed image"
        )
        seen.warning("placeholder-image", f"{found[0]}.image", message)


def check_artifacts(pipeline: Pipeline, graph: Graph, seen: Findings) -> None:
    """Find artifact types and numbers of artifacts that Vertex AI refuses while the pipeline runs."""
    for component in pipeline.components.values():
        for name, artifact in {**component.input_artifacts, **component.output_artifacts}.items():
            if not (isinstance(artifact.schema_title, str) and artifact.schema_title):
                continue
            if not _TITLE.fullmatch(artifact.schema_title):
                message = (
                    f"{artifact.schema_title!r} is no schema title of Vertex AI; expected a namespace of 3 to 21 small"
                    " letters and a name that begins with a capital, such as acme.Report"
                )
                seen.error("artifact-type", f"{component.path}: {name}", message)
    for task, num_items in graph.loops:
        collected = (pipeline.components.get(task.component) or Component(name="")).output_artifacts
        if collected and num_items > _MAX_COLLECTED:
            message = (
                f"loop {task.name!r} collects {num_items} artifacts; Vertex AI allows {_MAX_COLLECTED}: return the uri"
                " as a parameter, or loop over fewer items"
            )
            seen.error("collected-artifacts", task.path, message)


def check_root(default_root: str, config: JsonObject, seen: Findings) -> None:
    """Find a pipeline without a root for its outputs.

    Args:
        default_root: The pipeline root that the file was compiled with; empty for none.
        config: The runtimeConfig of the PipelineJob; empty for a pipeline alone.
        seen: Gets the finding.
    """
    root = config.get("gcsOutputDirectory") or default_root
    if isinstance(root, str) and root.startswith("gs://") and not is_placeholder(root.removeprefix("gs://")):
        return
    found = f"the pipeline root is {root!r}" if root else "the file has no pipeline root"
    message = f"{found}; give one when it is submitted, e.g. gs://my-bucket/pipelines, or compile with pipeline_root"
    seen.warning("no-pipeline-root", "defaultPipelineRoot", message)


def check_launcher(step: Step, seen: Findings, *, trains: bool) -> None:
    """Check a Google Cloud component: what is set on its task reaches only the small launcher container."""
    resources, path = step.container.resources, step.container.path
    if resources.get("accelerator"):
        message = (
            f"set_accelerator_* on step {step.name!r} gives the GPU to its launcher and not to the job; "
            "put accelerator_type and accelerator_count into worker_pool_specs"
        )
        seen.error("launcher-accelerator", f"{path}.resources.accelerator", message)
    if any(resources.get(name) for name in _LIMITS):
        message = (
            f"cpu or memory limits on step {step.name!r} size its launcher and not the job; "
            "choose machine_type in worker_pool_specs"
        )
        seen.warning("launcher-resources", f"{path}.resources", message)
    if step.container.env:
        names = join_or(repr(name) for name in list(step.container.env)[:5])
        message = (
            f"set_env_variable on step {step.name!r} ({names}) reaches its launcher only; put env into container_spec"
        )
        seen.warning("launcher-environment", f"{path}.env", message)
    if trains and step.is_cached:
        message = (
            f"step {step.name!r} trains, but its result may come from the cache, which ignores changes in the data "
            "or behind the image tag; call set_caching_options(False)"
        )
        seen.warning("training-cached", f"{step.path}.cachingOptions", message)


def check_plain_step(step: Step, region: str, today: date, seen: Findings) -> None:
    """Check accelerators and limits of a step that runs in its own container."""
    path = f"{step.container.path}.resources"
    for name, limit, unit in (("cpuLimit", _MAX_STEP_CPUS, "CPUs"), ("memoryLimit", _MAX_STEP_MEMORY_GB, "GB")):
        requested = step.container.resources.get(name)
        if isinstance(requested, (int, float)) and requested > limit:
            found = f"{requested:g} {unit} for step {step.name!r}"
            message = f"{found}; a step may have at most {limit}: make it a custom job with a machine_type"
            seen.error("step-resources", f"{path}.{name}", message)
    memory_gb = step.container.resources.get("memoryLimit")
    if isinstance(memory_gb, (int, float)) and 0 < memory_gb < _MIN_STEP_MEMORY_GB:
        found = f"a memory limit of {memory_gb * 1e9:g} bytes for step {step.name!r}"
        message = f"{found}; a number without a unit is in bytes: write it as '4G', for example"
        seen.warning("step-resources", f"{path}.memoryLimit", message)
    _step_accelerator(step, region, today, f"{path}.accelerator", seen)


def _step_accelerator(step: Step, region: str, today: date, path: str, seen: Findings) -> None:
    requested = mapping(step.container.resources.get("accelerator"))
    kind = step.fill(requested.get("resourceType") or requested.get("type"))
    count = step.fill(requested.get("resourceCount") or requested.get("count"))
    unknown = next((value for value in (kind, count) if isinstance(value, RuntimeValue)), None)
    if unknown is not None:
        message = f"the accelerator of step {step.name!r}: {unknown.origin}; it is known only at run time, not checked"
        seen.warning("not-checked", path, message)
        return
    if not isinstance(kind, str) or not kind:
        if count not in (None, "", 0, "0"):
            message = (
                f"step {step.name!r} has an accelerator count of {count} and no type; call set_accelerator_type as well"
            )
            seen.warning("accelerator-pair", path, message)
        return
    digits = str(int(count)) if isinstance(count, float) and count.is_integer() else str(count)
    number = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 6 else None
    machine = {"accelerator_type": kind, "accelerator_count": number}
    job = Job(spec={"worker_pool_specs": [{"machine_spec": machine}]}, region=region, today=today)
    check_accelerator(job.pools[0])
    check_region(job)
    # The rules of jobs report paths in a job; here each is the path of the accelerator.
    seen.findings += [replace(finding, path=path) for finding in job.findings]
    valid = sorted({one for (_, name), counts in load_catalogue().counts.items() if name == kind for one in counts})
    if valid and number is not None and number not in valid:
        message = (
            f"{number} x {kind} on step {step.name!r}; no machine has that many, valid counts are {join_or(valid)}"
        )
        seen.error("accelerator-count", f"{path}.count", message, tuple(str(one) for one in valid))
