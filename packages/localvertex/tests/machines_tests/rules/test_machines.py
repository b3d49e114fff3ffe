"""The rules about machines: the smallest job that breaks each."""

import datetime

import pytest
from machines_tests.conftest import MACHINE, RESERVED, T4, TODAY, Case, assert_broken, broken, pool, with_machine

from localvertex.machines import check_worker_pools

CASES = [
    broken([pool("n1-standard-2")], "machine-type", "error", f"{MACHINE}.machine_type", "n1-standard-4"),
    broken([pool("n1-standart-8", **T4)], "machine-type", "error", f"{MACHINE}.machine_type", "n1-standard-8 with 1"),
    broken([pool("n1-standard8", **T4)], "machine-type", "error", f"{MACHINE}.machine_type", "n1-standard-8 with 1"),
    broken([pool("n1-standard8")], "machine-type", "error", f"{MACHINE}.machine_type", "n1-standard-8"),
    broken([pool() | {"machine_spec": {}}], "machine-type", "error", MACHINE),
    broken([pool(gpu="T4", count=1)], "accelerator-type", "error", f"{MACHINE}.accelerator_type", "NVIDIA_TESLA_T4"),
    broken(
        [pool(gpu="nvidia-tesla-v100", count=1)], "accelerator-type", "error", f"{MACHINE}.accelerator_type", "V100"
    ),
    broken(
        [pool("g2-standard-8", "NVIDIA_TESLA_L4", 1)],
        "accelerator-type",
        "error",
        f"{MACHINE}.accelerator_type",
        "g2-standard-8 with 1 x NVIDIA_L4",
    ),
    broken([pool(gpu="TPU_V4_POD", count=8)], "accelerator-type", "error", f"{MACHINE}.accelerator_type", "n1"),
    broken([pool(gpu="NVIDIA_TESLA_T4")], "accelerator-pair", "error", MACHINE, "accelerator_count 1"),
    broken([pool(gpu="NVIDIA_TESLA_T4", count=0)], "accelerator-pair", "error", MACHINE, "accelerator_count 1"),
    broken([pool(count=2)], "accelerator-pair", "error", MACHINE, "n1-standard-8 with 2 x"),
    broken(
        [pool("n1-standard-32", "NVIDIA_TESLA_V100", 2)],
        "accelerator-count",
        "error",
        f"{MACHINE}.accelerator_count",
        "n1-standard-32 with 4 x NVIDIA_TESLA_V100",
    ),
    broken(
        [pool("e2-standard-4", **T4)], "accelerator-machine", "error", f"{MACHINE}.accelerator_type", "n1-standard-4"
    ),
    broken(
        [pool("a2-highgpu-1g")], "accelerator-required", "error", MACHINE, "a2-highgpu-1g with 1 x NVIDIA_TESLA_A100"
    ),
    broken([pool("n1-highmem-2", **T4)], "small-machine", "warning", f"{MACHINE}.machine_type"),
    broken([pool(gpu="NVIDIA_TESLA_K80", count=1)], "end-of-support", "error", f"{MACHINE}.accelerator_type", "T4"),
    broken(
        [pool(gpu="NVIDIA_TESLA_P100", count=1)],
        "end-of-support",
        "warning",
        f"{MACHINE}.accelerator_type",
        today=datetime.date(2026, 1, 1),
    ),
    broken(
        with_machine([pool("a4x-highgpu-4g", "NVIDIA_GB200", 4)], **RESERVED),
        "arm-image",
        "warning",
        "worker_pool_specs[0].container_spec.image_uri",
    ),
    broken([pool("cloud-tpu", "TPU_V2", 4)], "tpu", "error", MACHINE, "cloud-tpu with 8 x TPU_V2"),
    broken([pool("ct6e-standard-4t")], "tpu", "error", MACHINE),
    broken(
        with_machine([pool("ct6e-standard-4t", replicas=2)], tpu_topology="2x2"),
        "tpu",
        "error",
        "worker_pool_specs[0].replica_count",
    ),
]


@pytest.mark.parametrize("case", CASES)
def test_a_broken_job_has_this_finding(case: Case) -> None:
    assert_broken(case)


def test_an_unknown_accelerator_is_reported_once_and_each_name_once() -> None:
    (finding,) = check_worker_pools([pool("cloud-tpu", "TPU_V9", 8)], today=TODAY)
    assert (finding.rule, finding.alternatives) == ("accelerator-type", ("TPU_V3", "TPU_V2"))
    (finding,) = check_worker_pools([pool(gpu="NVIDIA_L5", count=1)], today=TODAY)
    assert finding.rule == "accelerator-type"
    assert [finding.message.count(each) for each in finding.alternatives] == [0] * len(finding.alternatives)
