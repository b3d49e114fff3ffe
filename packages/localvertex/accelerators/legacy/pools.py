"""Scale tier and task types of AI Platform Training as worker pools."""

from typing import Any

from accelerators.legacy.container import Task
from accelerators.legacy.fields import ROLES
from accelerators.legacy.machines import MACHINE_PLACEHOLDER, MachineConverter
from accelerators.legacy.report import Report
from localvertex_base.userinput.spelling import closest

_TIERS = ("BASIC", "STANDARD_1", "PREMIUM_1", "BASIC_GPU", "BASIC_TPU", "CUSTOM")


def worker_pools(training: dict[str, Any], converter: MachineConverter, report: Report) -> list[dict[str, Any]]:
    """Return master, workers, parameter servers and evaluators as pools 0 to 3; {} is an unused pool before others."""
    wanted = _expand(training, converter, report)
    task = Task(wanted, report)
    pools = [_pool(wanted, role, converter, task) for role in ROLES]
    while pools and not pools[-1]:
        pools.pop()
    if {} in pools:
        message = (
            "an unused pool before others stays as {}; a plain CustomJob accepts it, but CustomTrainingJobOp drops it"
        )
        report.add("doubtful", "worker pools", message)
    return pools


def _expand(training: dict[str, Any], converter: MachineConverter, report: Report) -> dict[str, Any]:
    """Return the training input with its scale tier expanded to machines."""
    tier = _tier(training, report)
    own = [name for role in ROLES for name in (f"{role}Type", f"{role}Count") if training.get(name)]
    wanted = dict(training)
    if tier == "CUSTOM":
        return wanted
    if "masterType" in own:
        message = f"{tier}, but masterType is set, which only CUSTOM allowed; treated as CUSTOM, so check it"
        report.add("decide", "scaleTier", message)
        return wanted
    for name in own:
        report.add("dropped", name, f"only used with the scale tier CUSTOM, and this is {tier}")
        del wanted[name]
    if tier == "BASIC_TPU":
        message = f"BASIC_TPU; replace {MACHINE_PLACEHOLDER} with a TPU or GPU machine type"
        report.add("decide", "scaleTier", message)
        return wanted | {"masterType": MACHINE_PLACEHOLDER}
    for role in ROLES:
        replicas, machine = converter.catalogue.legacy_tiers.get((tier, role), (0, ""))
        if machine:
            wanted |= {f"{role}Type": machine, f"{role}Count": replicas}
    report.add("changed", "scaleTier", f"{tier} is expanded to machines, because Vertex AI has no scale tiers")
    return wanted


def _tier(training: dict[str, Any], report: Report) -> str:
    given = training.get("scaleTier")
    if not given:
        if training.get("masterType"):
            report.add("doubtful", "scaleTier", "missing; treated as CUSTOM, because masterType is set")
            return "CUSTOM"
        report.add("doubtful", "scaleTier", "missing; treated as BASIC, the default of the service")
        return "BASIC"
    tier = str(given).upper().replace("-", "_")
    if tier not in _TIERS:
        near = closest(tier, _TIERS)
        hint = f"; treated as {near[0]}" if near else "; treated as CUSTOM"
        report.add("decide", "scaleTier", f"{given!r} is not a scale tier ({', '.join(_TIERS)}){hint}")
        return near[0] if near else "CUSTOM"
    return tier


def _pool(training: dict[str, Any], role: str, converter: MachineConverter, task: Task) -> dict[str, Any]:
    name = training.get(f"{role}Type") or ""
    config = training.get(f"{role}Config") or {}
    replicas = 1 if role == "master" else int(training.get(f"{role}Count") or 0)
    if not replicas:
        if name or config:
            converter.report.add("dropped", f"{role}Type", f"{role}Count is 0, so there was no such replica")
        return {}
    if not name:
        name = MACHINE_PLACEHOLDER
        message = f"missing; replace {MACHINE_PLACEHOLDER} with a machine type"
        converter.report.add("decide", f"{role}Type", message)
    machine = converter.machine(name, config.get("acceleratorConfig") or {}, role)
    if config.get("tpuTfVersion"):
        converter.report.add(
            "dropped", f"{role}Config.tpuTfVersion", "Vertex AI has no such field; the version is part of the image"
        )
    pool: dict[str, Any] = {"machine_spec": machine.as_spec(), "replica_count": replicas}
    if config.get("diskConfig"):
        pool["disk_spec"] = _disk(config["diskConfig"])
    gpu = machine.accelerator_type.startswith("NVIDIA")
    # Workers, parameter servers and evaluators run the image of the master unless they have their own.
    return pool | task.for_role(_with_command(training, config), gpu=gpu, role=role)


def _with_command(training: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
    master = training.get("masterConfig") or {}
    if config.get("imageUri"):
        return config
    inherited = {name: master[name] for name in ("containerCommand", "containerArgs") if name in master}
    return inherited | config


def _disk(config: dict[str, Any]) -> dict[str, Any]:
    disk = {"boot_disk_type": config.get("bootDiskType"), "boot_disk_size_gb": config.get("bootDiskSizeGb")}
    return {name: value for name, value in disk.items() if value}
