"""The rules about scheduling: the smallest job that breaks each."""

import pytest
from machines_tests.conftest import L4, MACHINE, RESERVED, T4, Case, assert_broken, broken, pool, with_machine

SPECIFIC = {
    "reservation_affinity_type": "SPECIFIC_RESERVATION",
    "key": "compute.googleapis.com/reservation-name",
    "values": ["projects/p/zones/us-central1-a/reservations/r"],
}

CASES = [
    broken(
        [pool(**T4)],
        "flex-start-accelerator",
        "error",
        f"{MACHINE}.accelerator_type",
        "NVIDIA_L4",
        scheduling_strategy="FLEX_START",
    ),
    broken(
        [pool()],
        "flex-start-accelerator",
        "error",
        f"{MACHINE}.accelerator_type",
        "g2-standard-8 with 1 x NVIDIA_L4",
        scheduling_strategy="FLEX_START",
    ),
    broken(
        [pool("a3-megagpu-8g", "NVIDIA_H100_MEGA_80GB", 8)],
        "flex-start-doubtful",
        "warning",
        f"{MACHINE}.accelerator_type",
        scheduling_strategy="FLEX_START",
    ),
    broken(
        [L4],
        "flex-start-timeout",
        "error",
        "scheduling.timeout",
        "604800s",
        scheduling_strategy="FLEX_START",
        timeout_seconds=604801,
    ),
    broken(
        [L4, pool("g2-standard-12", "NVIDIA_L4", 1)],
        "flex-start-pools",
        "error",
        "worker_pool_specs",
        scheduling_strategy="FLEX_START",
    ),
    broken(
        with_machine([L4], **RESERVED),
        "flex-start-reservation",
        "error",
        f"{MACHINE}.reservation_affinity",
        scheduling_strategy="FLEX_START",
    ),
    broken(
        with_machine([L4], reservation_affinity={"reservation_affinity_type": "SPECIFIC_RESERVATION"}),
        "reservation",
        "error",
        f"{MACHINE}.reservation_affinity",
    ),
    broken(
        with_machine([L4], reservation_affinity=SPECIFIC | {"key": ""}),
        "reservation",
        "error",
        f"{MACHINE}.reservation_affinity",
    ),
    broken(
        with_machine([L4], reservation_affinity=SPECIFIC),
        "reservation",
        "error",
        f"{MACHINE}.reservation_affinity.values",
        region="us-east1",
    ),
    broken(
        with_machine([L4], **RESERVED),
        "reservation",
        "error",
        f"{MACHINE}.reservation_affinity",
        persistent_resource_id="r",
    ),
    broken(
        with_machine([L4], reservation_affinity={"reservation_affinity_type": "SOME"}),
        "reservation",
        "error",
        f"{MACHINE}.reservation_affinity.reservation_affinity_type",
    ),
    broken([pool("a4x-highgpu-4g", "NVIDIA_GB200", 4)], "reservation", "error", f"{MACHINE}.reservation_affinity"),
    broken([pool("a4-highgpu-8g", "NVIDIA_B200", 8)], "capacity", "warning", f"{MACHINE}.reservation_affinity"),
    broken([L4], "scheduling-strategy", "error", "scheduling.strategy", "SPOT", scheduling_strategy="spot"),
    broken([L4], "scheduling-deprecated", "warning", "scheduling.strategy", "SPOT", scheduling_strategy="LOW_COST"),
    broken(
        [L4, L4 | {"replica_count": 2}],
        "spot-without-restart",
        "warning",
        "scheduling.restart_job_on_worker_restart",
        scheduling_strategy="SPOT",
    ),
    broken(
        [L4],
        "restart-is-not-spot",
        "warning",
        "scheduling.restart_job_on_worker_restart",
        "strategy SPOT",
        restart_job_on_worker_restart=True,
    ),
]


@pytest.mark.parametrize("case", CASES)
def test_a_broken_job_has_this_finding(case: Case) -> None:
    assert_broken(case)
