"""The rules about containers and disks: the smallest job that breaks each."""

from datetime import date

import pytest
from machines_tests.conftest import IMAGE, RESERVED, Case, assert_broken, broken, pool, with_machine

from localvertex.machines import check_worker_pools

CASES = [
    broken(
        [pool(disk_spec={"boot_disk_type": "pd-sdd"})],
        "disk-type",
        "error",
        "worker_pool_specs[0].disk_spec.boot_disk_type",
        "pd-ssd",
    ),
    broken(
        [pool(disk_spec={"boot_disk_size_gb": 50})],
        "disk-size",
        "error",
        "worker_pool_specs[0].disk_spec.boot_disk_size_gb",
        "boot_disk_size_gb 100",
    ),
    broken(
        with_machine(
            [pool("a3-ultragpu-8g", "NVIDIA_H200_141GB", 8, disk_spec={"boot_disk_type": "pd-ssd"})], **RESERVED
        ),
        "disk-hyperdisk",
        "error",
        "worker_pool_specs[0].disk_spec.boot_disk_type",
        "hyperdisk-balanced",
    ),
    broken(
        with_machine([pool("a4-highgpu-8g", "NVIDIA_B200", 8, disk_spec={"boot_disk_type": "pd-ssd"})], **RESERVED),
        "disk-hyperdisk",
        "warning",
        "worker_pool_specs[0].disk_spec.boot_disk_type",
        "hyperdisk-balanced",
    ),
    broken([pool(container_spec=None)], "container-choice", "error", "worker_pool_specs[0]"),
    broken(
        [pool(python_package_spec={"executor_image_uri": IMAGE, "package_uris": ["gs://b/p"], "python_module": "m"})],
        "container-choice",
        "error",
        "worker_pool_specs[0]",
    ),
    broken([pool(container_spec={})], "required-field", "error", "worker_pool_specs[0].container_spec"),
    broken(
        [pool(container_spec=None, python_package_spec={"executor_image_uri": IMAGE, "package_uris": ["gs://b/p"]})],
        "required-field",
        "error",
        "worker_pool_specs[0].python_package_spec",
    ),
    broken(
        [pool(container_spec={"image_uri": IMAGE, "env": [{"name": "A", "value": "b"}] * 101})],
        "list-length",
        "error",
        "worker_pool_specs[0].container_spec.env",
    ),
    broken(
        [pool(container_spec={"image_uri": "gcr.io/PROJECT_ID/train"})],
        "placeholder-image",
        "warning",
        "worker_pool_specs[0].container_spec.image_uri",
    ),
    broken(
        [pool(container_spec={"image_uri": "europe-docker.pkg.dev/vertex-ai/training/tf-gpu.2-15.py310:latest"})],
        "prebuilt-image",
        "warning",
        "worker_pool_specs[0].container_spec.image_uri",
    ),
]


@pytest.mark.parametrize("case", CASES)
def test_a_broken_job_has_this_finding(case: Case) -> None:
    assert_broken(case)


@pytest.mark.parametrize(
    ("image", "today", "is_reported"),
    [
        ("us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-17:latest", "2026-07-10", False),
        ("us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-17:latest", "2026-07-11", True),
        # Of a version that the table does not name: the day on which the last of its framework ended.
        ("asia-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310@sha256:" + "0" * 64, "2026-11-29", True),
        ("us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest", "2026-10-22", False),
        ("us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest", "2026-11-29", False),
        ("us-docker.pkg.dev/project/training/tf-cpu.2-17:latest", "2026-11-29", False),
    ],
)
def test_a_prebuilt_image_is_reported_from_its_last_day_on(image: str, today: str, is_reported: bool) -> None:
    pools = [pool(container_spec={"image_uri": image})]
    found = {finding.rule for finding in check_worker_pools(pools, today=date.fromisoformat(today))}
    assert ("prebuilt-image" in found) is is_reported
