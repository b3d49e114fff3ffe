"""Rules about the worker pools of a job: their number, their order, their roles and their replicas."""

from localvertex.machines.job.values import RuntimeValue, is_known
from localvertex.machines.rules.job import Job, PoolSpec

_ROLES = ("primary", "workers", "parameter servers", "evaluators")
"""The roles of pools 0, 1, 2 and 3 (page on distributed training)."""

_REDUCTION_SERVER = "reductionserver"
_REDUCTION_POOL = 2


def check_pools(job: Job) -> None:
    """Check the list of pools, then every pool."""
    listed = job.spec.get("worker_pool_specs")
    path = f"{job.prefix}worker_pool_specs"
    if isinstance(listed, RuntimeValue):
        return
    if not listed or not isinstance(listed, list) or not listed[0]:
        message = "the first pool is empty or missing; a job needs worker_pool_specs[0] with a machine and a container"
        job.error("pool-missing", path, message)
    elif len(listed) > len(_ROLES):
        job.error("pool-count", path, f"found {len(listed)} pools; expected at most {len(_ROLES)}: {', '.join(_ROLES)}")
    _gap(job)
    for pool in job.pools:
        _replicas(pool)
        _reduction_server(pool)


def _gap(job: Job) -> None:
    for position, pool in enumerate(job.pools):
        if pool.index == position or not job.pools[0].index == 0:
            continue
        role, new_role = (_ROLES[index] if index < len(_ROLES) else "another pool" for index in (pool.index, position))
        found = f"there is an empty pool before pool {pool.index} ({role})"
        if job.component:
            message = (
                f"{found}, which becomes {new_role}: the component's launcher drops empty pools; do not leave gaps"
            )
            job.error("pool-gap", pool.path, message)
        else:
            message = f"{found}; a plain CustomJob accepts it, but CustomTrainingJobOp drops it and shifts the others"
            job.warning("pool-gap", pool.path, message)
        return


def _replicas(pool: PoolSpec) -> None:
    count = pool.replica_count
    if isinstance(count, RuntimeValue):
        return
    if count is None:
        pool.job.warning("replica-count", pool.path, "replica_count is missing; set it, e.g. to 1")
    elif pool.index == 0 and count != 1:
        message = f"replica_count is {count}; pool 0 is the primary and has exactly 1, so move the others to pool 1"
        pool.error("pool-zero-replicas", "replica_count", message)
    elif count < 1:
        pool.error("replica-count", "replica_count", f"replica_count is {count}; expected at least 1, or no such pool")
    elif pool.index == 3 and count > 1:
        pool.warning("evaluator-count", "replica_count", f"found {count} evaluators; TensorFlow expects at most one")


def _reduction_server(pool: PoolSpec) -> None:
    if not (isinstance(pool.image, str) and _REDUCTION_SERVER in pool.image):
        return
    workers = [other for other in pool.job.pools if other.index in (0, 1)]
    on_gpu = [other.accelerator or not is_known(other.machine.get("accelerator_type", "")) for other in workers]
    if pool.index != _REDUCTION_POOL:
        message = f"Reduction Server image in pool {pool.index}; it belongs in pool {_REDUCTION_POOL}"
        pool.error("reduction-server", "container_spec.image_uri", message)
    elif pool.accelerator:
        message = f"Reduction Server with {pool.accelerator}; it needs no GPU, so use n1-highcpu-16 without one"
        pool.error("reduction-server", "machine_spec", message, ("n1-highcpu-16",))
    elif not all(on_gpu) or not any(other.index == 1 for other in workers):
        message = (
            "pool 2 is a Reduction Server, which serves only GPU workers that reduce with NCCL, "
            "but pools 0 and 1 have no such workers"
        )
        pool.warning("reduction-server", "container_spec.image_uri", message)
