"""Assigns the GPUs of this machine to replicas, as many to each as the job's spec requests."""

from collections.abc import Sequence

from localvertex._base.lines import WriteLine
from localvertex.containers.gpus import NONE, VARIABLE, visible_gpus
from localvertex.jobs.job import CustomJob


def num_gpus_of(job: CustomJob) -> int:
    """Return how many GPUs a job requests for all its replicas."""
    return sum(replica.pool.num_gpus for replica in job.replicas)


def gpu_environments(
    job: CustomJob, warn: WriteLine, visible: Sequence[str] | None = None
) -> dict[str, dict[str, str]]:
    """Return for each replica the variable that makes its GPUs visible; empty on a machine without GPUs.

    Warns once when the machine has fewer GPUs than the job requests. Then all replicas that request GPUs get the same
    number, 0 included: a replica that trains on a CPU would slow down its peers on GPUs. `visible` are the GPUs that
    the job may use, None for all.
    """
    wanted = {replica.name: replica.pool.num_gpus for replica in job.replicas if replica.pool.num_gpus}
    gpus = list(visible_gpus() if visible is None else visible)
    num_wanted = sum(wanted.values())
    share = max(wanted.values(), default=0) if num_wanted <= len(gpus) else len(gpus) // len(wanted)
    if num_wanted > len(gpus):
        requested = f"{num_wanted} GPU{'' if num_wanted == 1 else 's'}"
        result = f"each replica gets {share}" if share else "training on the CPU"
        warn(f"the job requests {requested}, this machine has {len(gpus) or 'none'}; {result}")
    if not gpus:
        return {replica.name: {} for replica in job.replicas}
    left = iter(gpus)
    environments = {}
    for replica in job.replicas:
        own = [next(left) for _ in range(min(share, wanted.get(replica.name, 0)))]
        environments[replica.name] = {VARIABLE: ",".join(own) or NONE}
    return environments
