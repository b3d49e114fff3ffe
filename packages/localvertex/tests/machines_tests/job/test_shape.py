"""The fields of a job, compared with the API: spelling, types and numbers."""

import pytest
from machines_tests.conftest import IMAGE, MACHINE, TODAY, Case, assert_broken, broken, pool

from localvertex.machines import check_custom_job, check_worker_pools

CASES = [
    broken([pool(machine_spce={})], "unknown-field", "error", "worker_pool_specs[0].machine_spce"),
    broken([pool(replicas="one")], "field-type", "error", "worker_pool_specs[0].replica_count"),
    broken([pool(replicas=float("nan"))], "field-type", "error", "worker_pool_specs[0].replica_count"),
    broken([pool(gpu="NVIDIA_TESLA_T4", count=True)], "field-type", "error", f"{MACHINE}.accelerator_count"),
]


@pytest.mark.parametrize("case", CASES)
def test_a_broken_job_has_this_finding(case: Case) -> None:
    assert_broken(case)


def test_files_and_components_may_use_camel_case() -> None:
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
    assert check_worker_pools(job["workerPoolSpecs"], today=TODAY) == []


@pytest.mark.parametrize(("text", "rules"), [("false", []), ("true", []), ("no", ["field-type"])])
def test_a_switch_may_be_the_text_that_operations_before_2_0_write(text: str, rules: list[str]) -> None:
    job = {"worker_pool_specs": [pool()], "scheduling": {"disable_retries": text}}
    assert [each.rule for each in check_custom_job(job, today=TODAY) if each.severity == "error"] == rules
