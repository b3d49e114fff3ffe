"""Rules about TPUs (page on configuring compute, 2026-08-20): accelerators, topology, replicas, pools, Spot."""

import math
import re

from localvertex.machines.job.values import RuntimeValue, is_known
from localvertex.machines.rules.job import Job, PoolSpec

_SLICES = ("TPU_V2", "TPU_V3")
_CHIPS_OF_A_HOST = 8
"""Chips of a cloud-tpu host; more chips are a pod."""
_TOPOLOGY = re.compile(r"\d{1,3}(?:x\d{1,3}){1,2}")
_CHIPS_OF_A_MACHINE = re.compile(r"-(\d+)t$")


def check_tpus(job: Job) -> None:
    """Check every pool on a TPU machine, and that no other pool is beside one."""
    with_tpus = [pool for pool in job.pools if pool.kind == "tpu-only"]
    for pool in with_tpus:
        is_pod = _cloud_tpu(pool) if pool.machine_type == "cloud-tpu" else _slice(pool)
        if is_pod and job.scheduling_strategy == "SPOT":
            message = "SPOT is not available for TPU pods, only for the TPUs of one host; use STANDARD"
            job.error("tpu", f"{job.prefix}scheduling.strategy", message, ("STANDARD",))
        if is_known(pool.replica_count) and pool.replica_count != 1:
            pool.error("tpu", "replica_count", f"replica_count is {pool.replica_count}; a TPU pool needs exactly 1")
    if with_tpus and len(job.pools) > 1:
        other = next(pool for pool in job.pools if pool is not with_tpus[0])
        message = f"found {len(job.pools)} pools; a job with TPUs has one pool with one replica, so remove the others"
        job.error("tpu", other.path, message)
    for pool in job.pools:
        if pool.kind not in ("", "tpu-only") and pool.machine.get("tpu_topology"):
            message = f"{pool.machine_type} has no TPUs; remove tpu_topology or choose a TPU machine"
            pool.error("tpu", "machine_spec.tpu_topology", message)


def _cloud_tpu(pool: PoolSpec) -> bool:
    """Check the accelerator of a cloud-tpu machine; return whether it is a pod."""
    accelerator, count = (pool.machine.get(key) for key in ("accelerator_type", "accelerator_count"))
    right_type = accelerator in _SLICES or isinstance(accelerator, RuntimeValue)
    right_count = isinstance(count, RuntimeValue) or (
        isinstance(count, int) and (count == _CHIPS_OF_A_HOST or (count > 0 and count % 32 == 0))
    )
    # Anything that is not an accelerator has been reported.
    is_known_type = not pool.accelerator or pool.accelerator in pool.job.catalogue.accelerators
    if not (right_type and right_count) and is_known_type:
        message = f"cloud-tpu with {count or 0} x {accelerator}; it supports 8 (one host) or a multiple of 32 (a pod)"
        pool.error("tpu", "machine_spec", message, tuple(f"cloud-tpu with 8 x {name}" for name in _SLICES))
    return isinstance(count, int) and count > _CHIPS_OF_A_HOST


def _slice(pool: PoolSpec) -> bool:
    """Check the topology of a newer TPU machine; return whether it spans several hosts."""
    machine, topology = pool.machine_type, pool.machine.get("tpu_topology")
    per_machine = _CHIPS_OF_A_MACHINE.search(machine)
    chips = int(per_machine[1]) if per_machine else 1
    if pool.accelerator or pool.machine.get("accelerator_count"):
        message = f"{machine} accepts neither accelerator_type nor accelerator_count; set tpu_topology, e.g. 2x2"
        pool.error("accelerator-machine", "machine_spec", message)
    elif not topology:
        pool.error("tpu", "machine_spec", f"tpu_topology is missing; {machine} needs one, e.g. 2x2")
    if not isinstance(topology, str):
        return False
    sides = [int(side) for side in topology.split("x")] if _TOPOLOGY.fullmatch(topology) else []
    total = math.prod(sides) if sides else 0
    if not total or total % chips:
        message = f"tpu_topology is {topology!r}; expected a multiple of the {chips} chips of {machine}, e.g. 2x4"
        pool.error("tpu", "machine_spec.tpu_topology", message)
    return total > chips
