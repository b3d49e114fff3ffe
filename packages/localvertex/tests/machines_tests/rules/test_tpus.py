"""TPUs: one pool, one replica, a topology that fits, and no pods on Spot."""

import pytest
from machines_tests.conftest import MACHINE, Case, assert_broken, broken, pool, with_machine

V6E = "ct6e-standard-4t"

CASES = [
    broken(
        [pool("cloud-tpu", "TPU_V2", 32)], "tpu", "error", "scheduling.strategy", "STANDARD", scheduling_strategy="SPOT"
    ),
    broken(
        with_machine([pool(V6E)], tpu_topology="4x4"),
        "tpu",
        "error",
        "scheduling.strategy",
        "STANDARD",
        scheduling_strategy="SPOT",
    ),
    broken([pool("cloud-tpu", "TPU_V2", 8), pool("n1-standard-4")], "tpu", "error", "worker_pool_specs[1]"),
    broken(with_machine([pool(V6E)], tpu_topology="3x1"), "tpu", "error", f"{MACHINE}.tpu_topology"),
    broken(with_machine([pool(V6E)], tpu_topology="2by2"), "tpu", "error", f"{MACHINE}.tpu_topology"),
    broken(with_machine([pool("n1-standard-4")], tpu_topology="2x2"), "tpu", "error", f"{MACHINE}.tpu_topology"),
]


@pytest.mark.parametrize("case", CASES)
def test_a_broken_job_has_this_finding(case: Case) -> None:
    assert_broken(case)
