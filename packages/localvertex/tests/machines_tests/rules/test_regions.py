"""The rules about regions: the smallest job that breaks each."""

import pytest
from machines_tests.conftest import L4, MACHINE, T4, Case, assert_broken, broken, pool

CASES = [
    broken([pool()], "region", "error", "region", "europe-north1", region="europe-north9"),
    broken([pool()], "region", "error", "region", "us-central1", region="us-central1-a"),
    broken([pool()], "region-doubtful", "warning", "region", region="asia-south2"),
    broken([L4], "accelerator-region", "error", f"{MACHINE}.accelerator_type", "europe-west4", region="europe-west1"),
    broken([pool(**T4)], "accelerator-region", "error", f"{MACHINE}.accelerator_type", "T4 in", region="africa-south1"),
    broken(
        [pool(**T4)],
        "accelerator-region-doubtful",
        "warning",
        f"{MACHINE}.accelerator_type",
        "NVIDIA_TESLA_T4 in us-",
        region="us-east4",
    ),
    broken([pool(**T4), pool(gpu="NVIDIA_TESLA_V100", count=1)], "same-zone", "warning", "worker_pool_specs"),
]


@pytest.mark.parametrize("case", CASES)
def test_a_broken_job_has_this_finding(case: Case) -> None:
    assert_broken(case)
