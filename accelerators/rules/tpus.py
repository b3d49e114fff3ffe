"""Rules about TPU machines, which are few: this project trains on GPUs."""

from accelerators.job.run_time import known
from accelerators.rules.job import Job, Pool

_SLICES = ("TPU_V2", "TPU_V3")


def check_tpu(job: Job, pool: Pool, where: str) -> None:
    """Check a pool on a TPU machine (facts of the page on configuring compute, 2026-08-20)."""
    machine = pool.machine
    if machine["machine_type"] == "cloud-tpu":
        _cloud_tpu(job, pool, where)
    else:
        _by_topology(job, pool, where)
    if known(pool.replica_count) and pool.replica_count != 1:
        message = f"replica_count is {pool.replica_count}; a pool of TPUs has exactly 1"
        job.note("tpu", "error", f"{pool.where}.replica_count", message)


def _cloud_tpu(job: Job, pool: Pool, where: str) -> None:
    accelerator, count = (pool.machine.get(key) for key in ("accelerator_type", "accelerator_count"))
    right_type = accelerator in _SLICES or (accelerator is not None and not known(accelerator))
    right_count = (count is not None and not known(count)) or (
        isinstance(count, int) and (count == 8 or (count > 0 and count % 32 == 0))
    )
    if not (right_type and right_count):
        message = f"cloud-tpu with {count or 0} x {accelerator}; it takes 8 (one host) or a multiple of 32 (a pod)"
        job.note("tpu", "error", where, message, tuple(f"cloud-tpu with 8 x {name}" for name in _SLICES))


def _by_topology(job: Job, pool: Pool, where: str) -> None:
    machine = pool.machine["machine_type"]
    if pool.accelerator or pool.machine.get("accelerator_count"):
        message = f"{machine} takes no accelerator_type or accelerator_count; give tpu_topology, e.g. 2x2"
        job.note("accelerator-machine", "error", where, message)
    elif not pool.machine.get("tpu_topology"):
        job.note("tpu", "error", where, f"{machine} needs tpu_topology, e.g. 2x2; none is given")
