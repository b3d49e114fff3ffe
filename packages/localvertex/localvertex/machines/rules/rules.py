"""All rules: their ids, what each finds, and the order in which they run."""

from collections.abc import Mapping
from datetime import date
from typing import Any

from localvertex._base.userinput.spelling import snake
from localvertex.machines.job.finding import Finding
from localvertex.machines.job.shape import Reading
from localvertex.machines.job.values import is_known
from localvertex.machines.rules.containers import check_containers, check_disks
from localvertex.machines.rules.job import Job
from localvertex.machines.rules.machines import check_machines
from localvertex.machines.rules.pools import check_pools
from localvertex.machines.rules.regions import check_region
from localvertex.machines.rules.scheduling import check_scheduling
from localvertex.machines.rules.tpus import check_tpus

RULES: dict[str, str] = {
    "accelerator-count": "a number of accelerators that this machine type does not support",
    "accelerator-machine": "an accelerator that cannot be attached to this machine type",
    "accelerator-pair": "accelerator_type without accelerator_count, or the reverse",
    "accelerator-region": "an accelerator that the region does not offer for training",
    "accelerator-region-doubtful": "an accelerator on which Google's pages disagree for this region",
    "accelerator-required": "a machine type that always has accelerators, requested without them",
    "accelerator-type": "an unknown accelerator, or one that is not for training",
    "artifact-type": "an artifact whose schema title Vertex AI Metadata refuses",
    "arm-image": "a machine with Arm CPUs, whose image has to be built for them",
    "artifact-in-worker-pools": "an artifact inside worker pools, which accept only parameters",
    "collected-artifacts": "a loop that collects more artifacts than Vertex AI allows",
    "capacity": "an accelerator that is hard to get without Spot, FLEX_START or a reservation",
    "component-location": "a component such as ModelUploadOp that falls back to its own default region",
    "container-choice": "both or neither of container_spec and python_package_spec",
    "disk-hyperdisk": "a boot disk other than hyperdisk-balanced on a machine that has (error) or may have no other",
    "disk-size": "a boot disk outside 100 to 64000 GB",
    "disk-type": "an unknown boot disk type",
    "end-of-support": "an accelerator whose support has ended (error) or will end (warning)",
    "evaluator-count": "more than one evaluator",
    "field-type": "a value of the wrong type",
    "flex-start-accelerator": "FLEX_START with an accelerator that it does not cover, or without one",
    "flex-start-doubtful": "FLEX_START with an accelerator for which Google's page names only the family",
    "flex-start-pools": "FLEX_START with different machines in the pools",
    "flex-start-reservation": "FLEX_START together with a reservation",
    "flex-start-timeout": "FLEX_START for more than 7 days",
    "launcher-accelerator": "a GPU set on a component's task, which reaches only its launcher",
    "launcher-environment": "environment variables set on a component's task, which reach only its launcher",
    "launcher-resources": "CPU or memory limits set on a component's task, which reach only its launcher",
    "list-length": "more than 100 environment variables or package URIs",
    "machine-type": "a machine type that is missing, unknown or not for training",
    "max-wait-unused": "max_wait_duration without FLEX_START",
    "moving-tag": "a cached step whose image has no tag or digest of its own",
    "no-pipeline-root": "a pipeline without a root for its outputs",
    "not-checked": "machines that are only known at run time",
    "placeholder-image": "a container image address that is still a placeholder",
    "pool-count": "more than four worker pools",
    "pool-gap": "an empty pool before one that is used",
    "pool-missing": "no first worker pool",
    "pool-zero-replicas": "a primary pool with a replica_count other than 1",
    "prebuilt-image": "one of Google's images for training that is past its end of availability",
    "reduction-server": "a Reduction Server in the wrong pool, with GPUs, or without GPU workers",
    "region": "a region without custom training",
    "region-doubtful": "a region on which Google's pages disagree",
    "replica-count": "a replica_count that is missing (warning) or below 1 (error)",
    "required-field": "a container or Python package without a required field",
    "reservation": "a reservation that is missing, incomplete, unknown, elsewhere or on a persistent resource",
    "restart-is-not-spot": "restart_job_on_worker_restart where Spot seems to be meant",
    "retries-disabled": "disable_retries together with Spot or restarts",
    "same-zone": "several accelerator types in one job",
    "scheduling-deprecated": "a deprecated name of a scheduling strategy",
    "scheduling-strategy": "an unknown scheduling strategy",
    "small-machine": "n1-highmem-2 with a GPU",
    "spot-without-restart": "Spot with several replicas but without restart_job_on_worker_restart",
    "step-resources": "an ordinary step that requests more than 96 CPUs or 624 GB, or less than 1 MB",
    "study": "a study or a number of trials that Vertex AI refuses (error) or advises against (warning)",
    "tensorboard-account": "a TensorBoard without a service account that writes to it",
    "tpu": "a TPU machine with the wrong accelerators, topology, replicas or strategy, or beside other pools",
    "training-cached": "a training task whose result may come from the cache",
    "unknown-field": "a field that the API does not have",
}
"""Rule id -> what it finds, in one line. Ids are stable."""


def _check_tensorboard(job: Job) -> None:
    """Check that a job with a TensorBoard has a service account; the service's own words are in kfp issue 7123."""
    if is_known(job.spec.get("tensorboard")) and job.spec["tensorboard"] and not job.spec.get("service_account"):
        message = (
            "tensorboard is set without a service account; set service_account to one that may write to the TensorBoard"
        )
        job.error("tensorboard-account", f"{job.prefix}tensorboard", message)


_IN_ORDER = (
    check_pools,
    check_machines,
    check_tpus,
    check_disks,
    check_containers,
    check_scheduling,
    check_region,
    _check_tensorboard,
)


def check_job(
    given: Any,
    reading: Reading,
    *,
    region: str | None,
    today: date | None,
    component: bool = False,
    path: str = "",
) -> list[Finding]:
    """Read a CustomJob or CustomJobSpec and run every rule over it.

    Args:
        given: The fields as given; `is_custom_job` decides which of the two messages they are.
        reading: The reading; its findings come first.
        region: Region of the job; None or "" when it is not known.
        today: The date to compare end-of-support dates with; None for the current date.
        component: Whether the launcher of a Google Cloud component creates the job.
        path: Path in the file of a CustomJobSpec inside another message, e.g. "trial_job_spec".

    Returns:
        Findings from reading, followed by findings from the rules.
    """
    whole = not path and is_custom_job(given)
    fields = reading.message(given, "CustomJob" if whole else "CustomJobSpec", path)
    path = "job_spec" if whole else path
    job = Job(
        spec=fields.get("job_spec", {}) if whole else fields,
        prefix=f"{path}." if path else "",
        names=f"{fields.get('display_name', '')} {fields.get('labels', '')}" if whole else "",
        component=component,
        region=region or "",
        today=today or date.today(),
        findings=reading.findings,
    )
    for rule in _IN_ORDER:
        rule(job)
    return job.findings


def is_custom_job(value: object) -> bool:
    """Return whether the value looks like a CustomJob rather than a CustomJobSpec."""
    keys = {snake(key) for key in value if isinstance(key, str)} if isinstance(value, Mapping) else set()
    return "job_spec" in keys or ("worker_pool_specs" not in keys and "display_name" in keys)
