"""The rules about worker pools: the smallest job that breaks each."""

import pytest
from machines_tests.conftest import L4, T4, Case, assert_broken, broken, pool

REDUCTION_SERVER = "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver:latest"

CASES = [
    broken([L4 | {"replica_count": 2}], "pool-zero-replicas", "error", "worker_pool_specs[0].replica_count"),
    broken([pool(replicas=None)], "replica-count", "warning", "worker_pool_specs[0]"),
    broken([L4, L4 | {"replica_count": 0}], "replica-count", "error", "worker_pool_specs[1].replica_count"),
    broken([L4, {}, L4], "pool-gap", "error", "worker_pool_specs[2]"),
    broken([L4, None, {}, L4], "pool-gap", "error", "worker_pool_specs[3]"),
    broken([], "pool-missing", "error", "worker_pool_specs"),
    broken([{}, L4], "pool-missing", "error", "worker_pool_specs"),
    broken([L4] * 5, "pool-count", "error", "worker_pool_specs"),
    broken([L4, L4, pool(), pool(replicas=2)], "evaluator-count", "warning", "worker_pool_specs[3].replica_count"),
    broken(
        [pool(**T4), pool(container_spec={"image_uri": REDUCTION_SERVER})],
        "reduction-server",
        "error",
        "worker_pool_specs[1].container_spec.image_uri",
    ),
    broken(
        [pool(**T4), pool(**T4), pool(**T4, container_spec={"image_uri": REDUCTION_SERVER})],
        "reduction-server",
        "error",
        "worker_pool_specs[2].machine_spec",
        "n1-highcpu-16",
    ),
    broken(
        [pool(), pool(), pool("n1-highcpu-16", container_spec={"image_uri": REDUCTION_SERVER})],
        "reduction-server",
        "warning",
        "worker_pool_specs[2].container_spec.image_uri",
    ),
]


@pytest.mark.parametrize("case", CASES)
def test_a_broken_job_has_this_finding(case: Case) -> None:
    assert_broken(case)
