"""The fields of a job, compared with the API: spelling, types and numbers."""

import pytest
from accelerators_tests.conftest import IMAGE, L4, MACHINE, TODAY, Case, assert_broken, broken, pool

from accelerators import check_custom_job

CASES = [
    broken([pool(machine_spce={})], "unknown-field", "error", "worker_pool_specs[0].machine_spce"),
    broken([pool(replicas="one")], "field-type", "error", "worker_pool_specs[0].replica_count"),
    broken([pool(replicas=float("nan"))], "field-type", "error", "worker_pool_specs[0].replica_count"),
    broken([pool(gpu="NVIDIA_TESLA_T4", count="1")], "quoted-number", "warning", f"{MACHINE}.accelerator_count"),
    broken([pool(gpu="NVIDIA_TESLA_T4", count=True)], "field-type", "error", f"{MACHINE}.accelerator_count"),
    broken([pool(gpu="NVIDIA_TESLA_T4", count=1.0)], "float-number", "warning", f"{MACHINE}.accelerator_count"),
    broken(
        [{"machineSpec": L4["machine_spec"], "replica_count": 1, "container_spec": {"image_uri": IMAGE}}],
        "camel-case",
        "warning",
        "worker_pool_specs[0].machineSpec",
    ),
]


@pytest.mark.parametrize("case", CASES)
def test_a_broken_job_has_this_finding(case: Case) -> None:
    assert_broken(case)


def test_files_may_use_camel_case_and_components_may_on_vertex_only() -> None:
    job = {
        "workerPoolSpecs": [
            {
                "machineSpec": {"machineType": "n1-standard-8", "acceleratorType": "NVIDIA_TESLA_T4"}
                | {"acceleratorCount": "1"},
                "replicaCount": 1.0,
                "containerSpec": {"imageUri": IMAGE},
            }
        ]
    }
    assert check_custom_job(job, today=TODAY) == []
    assert {finding.rule for finding in check_custom_job(job, today=TODAY, lenient=False)} == {
        "camel-case",
        "quoted-number",
        "float-number",
    }
