"""Rules about the worker pools of a job: which there are, how many replicas, what stands in which place."""

from accelerators.job.run_time import AtRunTime, known
from accelerators.rules.job import Job, Pool

ROLES = ("primary", "workers", "parameter servers", "evaluators")
"""What pool 0, 1, 2 and 3 are for (page on distributed training)."""

_REDUCTION_SERVER = "reductionserver"
_REDUCTION_POOL = 2


def check_pools(job: Job) -> None:
    """Check the list of pools, then every pool."""
    listed = job.spec.get("worker_pool_specs")
    where = f"{job.prefix}worker_pool_specs"
    if isinstance(listed, AtRunTime):
        return
    if not listed or not isinstance(listed, list) or not listed[0]:
        message = "the first pool is empty or missing; a job needs worker_pool_specs[0] with a machine and a container"
        job.note("pool-missing", "error", where, message)
    elif len(listed) > len(ROLES):
        message = f"{len(listed)} pools; there are at most 4: primary, workers, parameter servers, evaluators"
        job.note("pool-count", "error", where, message)
    _gap(job)
    for pool in job.pools:
        _replicas(job, pool)
        _reduction_server(job, pool)


def _gap(job: Job) -> None:
    for place, pool in enumerate(job.pools):
        if pool.index == place or not job.pools[0].index == 0:
            continue
        role, would_be = (ROLES[index] if index < len(ROLES) else "another pool" for index in (pool.index, place))
        message = f"an empty pool before pool {pool.index} ({role})"
        if job.component:
            message += f"; the component's launcher drops it, and these become {would_be}: do not leave gaps"
            job.note("pool-gap", "error", pool.where, message)
        else:
            message += "; a plain CustomJob may have it, CustomTrainingJobOp would drop it and shift the others"
            job.note("pool-gap", "warning", pool.where, message)
        return


def _replicas(job: Job, pool: Pool) -> None:
    count = pool.replica_count
    where = f"{pool.where}.replica_count"
    if isinstance(count, AtRunTime):
        return
    if count is None:
        job.note("replica-count", "warning", pool.where, "no replica_count; write down how many you want, e.g. 1")
    elif pool.index == 0 and count != 1:
        message = f"replica_count is {count}; pool 0 is the primary and has exactly 1: put the others into pool 1"
        job.note("pool-zero-replicas", "error", where, message)
    elif count < 1:
        message = f"replica_count is {count}; expected at least 1: leave the pool out instead"
        job.note("replica-count", "error", where, message)
    elif pool.index == 3 and count > 1:
        job.note("evaluator-count", "warning", where, f"{count} evaluators; TensorFlow expects at most one")


def _reduction_server(job: Job, pool: Pool) -> None:
    if not (isinstance(pool.image, str) and _REDUCTION_SERVER in pool.image):
        return
    if pool.index != _REDUCTION_POOL:
        message = f"a Reduction Server image in pool {pool.index}; it belongs into pool 2"
        job.note("reduction-server", "error", f"{pool.where}.container_spec.image_uri", message)
    elif pool.accelerator:
        message = f"Reduction Server with {pool.accelerator}; it needs no GPU: use n1-highcpu-16 without one"
        job.note("reduction-server", "error", f"{pool.where}.machine_spec", message, ("n1-highcpu-16",))
    else:
        _who_reduces(job, pool)


def _who_reduces(job: Job, pool: Pool) -> None:
    workers = [other for other in job.pools if other.index in (0, 1)]
    on_gpu = [other.accelerator or not known(other.machine.get("accelerator_type", "")) for other in workers]
    if not all(on_gpu) or not any(other.index == 1 for other in workers):
        message = (
            "pool 2 is a Reduction Server and no parameter server: it serves GPU workers that reduce with NCCL, "
            "and pools 0 and 1 are not such workers"
        )
        job.note("reduction-server", "warning", f"{pool.where}.container_spec.image_uri", message)
