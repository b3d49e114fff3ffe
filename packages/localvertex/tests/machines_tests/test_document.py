"""Pools alone in a file."""

from localvertex.machines.document import examine

MACHINE = {"machineType": "n1-standard-8", "acceleratorType": "NVIDIA_TESLA_T4", "accelerator_count": 1.0}
IMAGE = {"image_uri": "europe-docker.pkg.dev/my-project/train/train:1"}
POOLS = [{"machine_spec": MACHINE, "replica_count": 1.0, "container_spec": IMAGE}]


def test_pools_alone_in_a_file_are_read_like_those_of_a_custom_job_spec() -> None:
    """Floats and camelCase are accepted, as by the REST API and gcloud."""
    for document in (POOLS, {"worker_pool_specs": POOLS}):
        assert examine(document, "pools.yaml", region=None, today=None).findings == []
