"""Worker pools in Vertex AI's format, and machines that are refused before they are requested."""

import dataclasses

import pytest

from components.container_image import PLACEHOLDER_IMAGE
from components.train.machines import Machines, check
from localvertex._base.userinput.errors import UserError

IMAGE = "us-docker.pkg.dev/project/images/image-training-python:1"


def machines(**changes: object) -> Machines:
    fields = {"machine_type": "n1-standard-8", "accelerator_type": "NVIDIA_TESLA_T4", "accelerator_count": 1}
    return Machines(**{**fields, **changes})  # type: ignore[arg-type]


def test_one_machine_is_one_pool() -> None:
    assert machines().worker_pool_specs(image=IMAGE, args=["--epochs=1"]) == [
        {
            "machine_spec": {
                "machine_type": "n1-standard-8",
                "accelerator_type": "NVIDIA_TESLA_T4",
                "accelerator_count": 1,
            },
            "replica_count": 1,
            "container_spec": {
                "image_uri": IMAGE,
                "command": ["python", "-m", "trainer.task"],
                "args": ["--epochs=1"],
            },
        }
    ]


def test_the_chief_has_its_own_pool_and_the_workers_the_next() -> None:
    pools = machines(replica_count=4).worker_pool_specs(image=IMAGE, args=[])
    assert [pool["replica_count"] for pool in pools] == [1, 3]
    assert pools[0]["machine_spec"] == pools[1]["machine_spec"]


def test_parameter_servers_are_pool_2_and_have_no_gpu() -> None:
    pools = machines(replica_count=2, parameter_server_count=3).worker_pool_specs(image=IMAGE, args=[])
    assert [pool["replica_count"] for pool in pools] == [1, 1, 3]
    assert pools[2]["machine_spec"] == {"machine_type": "n1-standard-8"}


def test_parameter_servers_beside_a_machine_that_always_has_gpus_get_a_general_purpose_one() -> None:
    given = machines(machine_type="g2-standard-8", accelerator_type="NVIDIA_L4", replica_count=2)
    pools = dataclasses.replace(given, parameter_server_count=1).worker_pool_specs(image=IMAGE, args=[])
    assert pools[2]["machine_spec"] == {"machine_type": "n1-standard-8"}
    assert check(dataclasses.replace(given, parameter_server_count=1), image=IMAGE, region="us-central1") == []


RESERVATION = "projects/p/zones/us-central1-a/reservations/r"


def test_disk_and_reservation_are_those_of_the_machines_that_train() -> None:
    given = machines(
        replica_count=2,
        parameter_server_count=1,
        boot_disk_type="pd-ssd",
        boot_disk_size_gb=500,
        reservation=RESERVATION,
    )
    chief, worker, server = given.worker_pool_specs(image=IMAGE, args=[])
    assert chief["disk_spec"] == {"boot_disk_type": "pd-ssd", "boot_disk_size_gb": 500}
    assert chief["machine_spec"]["reservation_affinity"] == {
        "reservation_affinity_type": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [RESERVATION],
    }
    assert worker == chief
    assert set(server["machine_spec"]) == {"machine_type"}
    assert "disk_spec" not in server
    assert not [each for each in check(given, image=IMAGE, region="us-central1") if each.severity == "error"]


def test_the_default_disk_is_left_to_the_machine() -> None:
    """A3 Ultra and A4 default to another type."""
    (pool,) = machines().worker_pool_specs(image=IMAGE, args=[])
    assert "disk_spec" not in pool
    (pool,) = machines(boot_disk_size_gb=200).worker_pool_specs(image=IMAGE, args=[])
    assert pool["disk_spec"] == {"boot_disk_size_gb": 200}


def test_any_reservation_needs_no_name() -> None:
    (pool,) = machines(reservation="ANY").worker_pool_specs(image=IMAGE, args=[])
    assert pool["machine_spec"]["reservation_affinity"] == {"reservation_affinity_type": "ANY_RESERVATION"}


def test_a_cpu_machine_names_no_accelerator() -> None:
    (pool,) = Machines(machine_type="n1-standard-8").worker_pool_specs(image=IMAGE, args=[])
    assert pool["machine_spec"] == {"machine_type": "n1-standard-8"}


def test_only_several_replicas_restart_together() -> None:
    assert not machines().restart_job_on_worker_restart
    assert machines(replica_count=2).restart_job_on_worker_restart


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"replica_count": 0}, "replica_count is 0"),
        ({"parameter_server_count": -1}, "parameter_server_count is -1"),
        ({"parameter_server_count": 1}, "set replica_count to 2 or more"),
        ({"timeout_seconds": 0}, "timeout_seconds is 0"),
        ({"max_wait_seconds": 0, "scheduling_strategy": "FLEX_START"}, "0 lets FLEX_START wait forever"),
        ({"max_wait_seconds": 10**14, "scheduling_strategy": "FLEX_START"}, "max_wait_seconds is 100000000000000"),
        ({"timeout_seconds": 10**14}, "timeout_seconds is 100000000000000"),
        ({"scheduling_strategy": ""}, "scheduling_strategy is empty"),
        ({"reservation": "mine"}, "reservation is 'mine'; expected ANY or projects/"),
        ({"persistent_resource_id": "projects/p/x"}, "persistent_resource_id is 'projects/p/x'; expected its id alone"),
        ({"persistent_resource_id": "r", "scheduling_strategy": "SPOT"}, "SPOT with persistent_resource_id"),
    ],
)
def test_values_out_of_range_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        machines(**changes)


# Rows of the guides' own table: 3 GPUs exist nowhere, an n1-standard-32 needs 4 V100 (`2 are too few`).
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"accelerator_count": 3}, "3"),
        ({"machine_type": "n1-standard-32", "accelerator_type": "NVIDIA_TESLA_V100", "accelerator_count": 2}, "4"),
        ({"machine_type": "a2-highgpu-1g"}, "NVIDIA_TESLA_A100"),
        ({"accelerator_type": ""}, "accelerator_type"),
        ({"scheduling_strategy": "FLEX_START"}, "FLEX_START"),
        ({"boot_disk_size_gb": 99}, "boot_disk_size_gb is 99; expected 100 to 64000"),
        ({"boot_disk_type": "pd-sdd"}, "nearest: pd-ssd"),
        ({"reservation": "ANY", "persistent_resource_id": "r"}, "exclude each other"),
        ({"reservation": "projects/p/zones/us-east1-b/reservations/r"}, "in zone us-east1-b, but the job runs in us-c"),
    ],
)
def test_what_vertex_would_refuse_is_refused_with_the_nearest_choice(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        check(machines(**changes), image=IMAGE, region="us-central1")
    assert "\n" not in str(caught.value)


def test_a_gpu_that_the_region_lacks_is_refused() -> None:
    with pytest.raises(UserError, match="africa-south1"):
        check(machines(), image=IMAGE, region="africa-south1")


@pytest.mark.parametrize(
    ("machine_type", "gpu", "count"),
    [("g4-standard-48", "NVIDIA_RTX_PRO_6000", 1), ("a4-highgpu-8g", "NVIDIA_B200", 8)],
)
def test_a_gpu_beyond_the_build_of_tensorflow_needs_an_own_image(machine_type: str, gpu: str, count: int) -> None:
    given = machines(machine_type=machine_type, accelerator_type=gpu, accelerator_count=count)
    with pytest.raises(UserError, match=r"built with CUDA 12\.5.*or give an --image that supports it"):
        check(given, image=PLACEHOLDER_IMAGE, region="us-central1")
    assert "make sure that your image supports it" in check(given, image=IMAGE, region="us-central1")[-1].message


def test_a_valid_job_passes_without_errors() -> None:
    assert [f for f in check(machines(), image=IMAGE, region="us-central1") if f.severity == "error"] == []


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (machines(), "1 x n1-standard-8 with 1 x NVIDIA_TESLA_T4, STANDARD"),
        (
            machines(replica_count=2, scheduling_strategy="SPOT"),
            "2 x n1-standard-8 with 1 x NVIDIA_TESLA_T4 each, SPOT",
        ),
        (Machines(machine_type="n1-highmem-8"), "1 x n1-highmem-8 without GPUs, STANDARD"),
    ],
)
def test_machines_have_a_readable_text(given: Machines, text: str) -> None:
    assert str(given) == text
