"""The machines of a converted job as settings for this project's compile.py."""

from typing import Any

from accelerators.catalogue.catalogue import load_catalogue
from accelerators.catalogue.nearest import without_accelerators
from accelerators.legacy.fields import ROLES
from accelerators.legacy.job import NAME_PLACEHOLDER
from accelerators.legacy.report import Report

# Remarks on the old program do not matter to a pipeline that runs its own.
_PROGRAM = frozenset(
    "args imageUri jobDir jobId packageUris pythonModule pythonVersion runtimeVersion TF_CONFIG "
    "useChiefInTfConfig".split()
) | {f"{role}Config.{name}" for role in ROLES for name in ("imageUri", "containerArgs", "containerCommand")}
_MACHINE = ("machine_type", "accelerator_type", "accelerator_count")
_DISK = ("boot_disk_type", "boot_disk_size_gb")
_ELSEWHERE = {
    "labels": "labels are set when the pipeline is submitted",
    "enable_web_access": "the pipeline does not offer it",
}


def pipeline_settings(job: dict[str, Any], report: Report, old: dict[str, Any]) -> dict[str, Any]:
    """Return the pipeline settings for the machines of a job; report everything else as dropped.

    Args:
        job: The result of `vertex_job`.
        report: Gets a remark for everything that the pipeline has no setting for.
        old: The `trainingInput` that the job was converted from.
    """
    spec = job.get("job_spec") or job.get("trial_job_spec") or {}
    pools = spec["worker_pool_specs"]
    first = pools[0]["machine_spec"]
    settings: dict[str, Any] = {
        "machine_type": first["machine_type"],
        "accelerator_type": first.get("accelerator_type", ""),
        "accelerator_count": first.get("accelerator_count", 0),
    } | _replicas(pools, report)
    settings |= {name: value for name, value in (pools[0].get("disk_spec") or {}).items() if name in _DISK}
    scheduling = spec.get("scheduling") or {}
    settings["scheduling_strategy"] = scheduling.get("strategy", "STANDARD")
    if "timeout" in scheduling:
        settings["timeout_seconds"] = int(float(scheduling["timeout"][:-1]))
    for name in ("service_account", "network"):
        if name in spec:
            settings[name] = spec[name]
    if "encryption_spec" in job:
        settings["kms_key"] = job["encryption_spec"]["kms_key_name"]
    report.remarks = [remark for remark in report.remarks if remark.field not in _PROGRAM]
    for name in sorted(_PROGRAM & set(old)):
        own_root = "the pipeline keeps checkpoints and models under its own pipeline root"
        own_program = "belongs to your program; the pipeline runs its own image and trainer"
        report.add("dropped", name, own_root if name == "jobDir" else own_program)
    _not_in_the_pipeline(job, spec, report)
    return settings


def worker_pools(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the worker pools that the pipeline would create from the settings, for the check."""
    machine = {name: settings[name] for name in _MACHINE if settings[name]}
    disk = {name: settings[name] for name in _DISK if name in settings}
    trains = {"machine_spec": machine} | ({"disk_spec": disk} if disk else {})
    serves = {"machine_spec": {"machine_type": without_accelerators(load_catalogue(), settings["machine_type"])}}
    workers, servers = settings["replica_count"] - 1, settings["parameter_server_count"]
    return [
        {**pool, "replica_count": count, "container_spec": {"image_uri": "IMAGE_URI"}}
        for pool, count in ((trains, 1), (trains, workers), (serves, servers))
        if count
    ]


def _replicas(pools: list[dict[str, Any]], report: Report) -> dict[str, int]:
    workers, servers, evaluators = ([*pools[1:], {}, {}, {}])[:3]
    if workers and workers["machine_spec"] != pools[0]["machine_spec"]:
        message = "the workers had a different machine type; the pipeline uses the master's for all"
        report.add("decide", "workerType", message)
    if servers:
        message = "parameter servers had their own machine type; the pipeline uses the master's without GPUs"
        report.add("changed", "parameterServerType", message)
    if servers and not workers:
        message = "parameter servers without workers; the pipeline needs a replica_count of 2 or more with them"
        report.add("decide", "parameterServerCount", message)
    if evaluators:
        report.add("dropped", "evaluatorType", "the pipeline evaluates in its own step")
    return {
        "replica_count": 1 + int(workers.get("replica_count", 0)),
        "parameter_server_count": int(servers.get("replica_count", 0)),
    }


def _not_in_the_pipeline(job: dict[str, Any], spec: dict[str, Any], report: Report) -> None:
    report.add("dropped", "program and args", "the pipeline trains with this project's trainer, not with your program")
    if job["display_name"] != NAME_PLACEHOLDER:
        report.add("dropped", "jobId", f"{job['display_name']}: a run is named when the pipeline is submitted")
    for name, reason in _ELSEWHERE.items():
        if name in job or name in spec:
            report.add("dropped", name, reason)
    if (spec.get("scheduling") or {}).get("restart_job_on_worker_restart") is not None:
        report.add(
            "dropped", "restart_job_on_worker_restart", "the pipeline sets it according to the number of replicas"
        )
    if any(
        pool.get("disk_spec") != spec["worker_pool_specs"][0].get("disk_spec") for pool in spec["worker_pool_specs"]
    ):
        report.add("changed", "diskConfig", "the pipeline gives all machines that train the master's boot disk")
    if "study_spec" in job:
        report.add("decide", "hyperparameters", "the pipeline trains one model without tuning; choose the values")
