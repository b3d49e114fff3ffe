"""Rules about single steps of a pipeline: what is set on a launcher, and resources of ordinary steps."""

from datetime import date
from typing import Any

from accelerators.catalogue.catalogue import Catalogue
from accelerators.job.finding import Finding
from accelerators.pipeline.step import Step, mapping
from accelerators.rules.job import Job
from accelerators.rules.machines import check_accelerator
from accelerators.rules.regions import check_region
from userinput.spelling import listed

MAX_STEP_CPUS = 96
MAX_STEP_MEMORY_GB = 624
"""What an ordinary step may ask for (page on machine types for pipelines); larger ones need a custom job."""

_LIMITS = ("cpuLimit", "cpuRequest", "memoryLimit", "memoryRequest")
_LIMITS_AT_RUN_TIME = ("resourceCpuLimit", "resourceCpuRequest", "resourceMemoryLimit", "resourceMemoryRequest")


def check_launcher(step: Step, *, trains: bool) -> list[Finding]:
    """Check a Google Cloud component: what is set on its task reaches only the small launcher container."""
    findings = []
    resources = mapping(step.container.get("resources"))
    where = step.container_where
    if resources.get("accelerator"):
        message = (
            f"set_accelerator_* on step {step.name!r} gives the GPU to its launcher and not to the job; "
            "put accelerator_type and accelerator_count into worker_pool_specs"
        )
        place = f"{where}.resources.accelerator"
        findings.append(Finding(rule="launcher-accelerator", severity="error", where=place, message=message))
    if any(resources.get(name) for name in (*_LIMITS, *_LIMITS_AT_RUN_TIME)):
        message = (
            f"cpu or memory limits on step {step.name!r} size its launcher and not the job; "
            "choose machine_type in worker_pool_specs"
        )
        findings.append(
            Finding(rule="launcher-resources", severity="warning", where=f"{where}.resources", message=message)
        )
    findings += _environment(step)
    if trains and step.cached:
        message = (
            f"step {step.name!r} trains and may be answered from the cache (same inputs, whatever is in the data or "
            "behind the image's tag); call set_caching_options(False)"
        )
        place = f"{step.where}.cachingOptions"
        findings.append(Finding(rule="training-cached", severity="warning", where=place, message=message))
    return findings


def _environment(step: Step) -> list[Finding]:
    env = step.container.get("env")
    names = [str(mapping(entry).get("name")) for entry in env] if isinstance(env, list) else []
    if not names:
        return []
    shown = listed(repr(name) for name in names[:5])
    message = f"set_env_variable on step {step.name!r} ({shown}) reaches its launcher only; put env into container_spec"
    place = f"{step.container_where}.env"
    return [Finding(rule="launcher-environment", severity="warning", where=place, message=message)]


def check_plain_step(step: Step, region: str, catalogue: Catalogue, today: date) -> list[Finding]:
    """Check accelerators and limits of a step that runs in its own container."""
    resources = mapping(step.container.get("resources"))
    if not resources:
        return []
    return _limits(step, resources) + _step_accelerator(step, resources, region, catalogue, today)


def _limits(step: Step, resources: dict[str, Any]) -> list[Finding]:
    findings = []
    for name, limit, unit in (("cpuLimit", MAX_STEP_CPUS, "CPUs"), ("memoryLimit", MAX_STEP_MEMORY_GB, "GB")):
        asked = resources.get(name)
        if isinstance(asked, (int, float)) and asked > limit:
            message = f"{asked:g} {unit}; a step may have at most {limit}: make it a custom job with a machine_type"
            place = f"{step.container_where}.resources.{name}"
            findings.append(Finding(rule="step-resources", severity="error", where=place, message=message))
    return findings


def _step_accelerator(
    step: Step, resources: dict[str, Any], region: str, catalogue: Catalogue, today: date
) -> list[Finding]:
    asked = mapping(resources.get("accelerator"))
    kind = asked.get("type") or asked.get("resourceType")
    count = asked.get("count") or asked.get("resourceCount")
    if not isinstance(kind, str) or "{{$" in kind:
        return []
    where = f"{step.container_where}.resources.accelerator"
    digits = str(count)
    number = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 6 else None
    machine = {"accelerator_type": kind} | ({} if number is None else {"accelerator_count": number})
    spec = {"worker_pool_specs": [{"machine_spec": machine}]}
    job = Job(spec=spec, catalogue=catalogue, region=region, today=today)
    check_accelerator(job, job.pools[0], where)
    check_region(job)
    valid = sorted({one for machine_type in catalogue.carriers(kind) for one in catalogue.counts[machine_type, kind]})
    if valid and number is not None and number not in valid:
        message = f"{number} x {kind} on step {step.name!r}; no machine has so many, valid are {listed(valid)}"
        job.note("accelerator-count", "error", f"{where}.count", message, tuple(str(one) for one in valid))
    return [
        Finding(
            rule=f.rule,
            severity=f.severity,
            where=_moved(f.where, where),
            message=f.message,
            alternatives=f.alternatives,
        )
        for f in job.findings
    ]


def _moved(where: str, place: str) -> str:
    return where if where.startswith(place) else place
