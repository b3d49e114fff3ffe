"""Fixtures for the conftest of a folder whose tests use buckets."""

from collections.abc import Iterator

import pytest

from vertex_testing.cloud_storage.server import CloudStorage


@pytest.fixture(scope="module")
def cloud_storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CloudStorage]:
    """A Cloud Storage server on loopback; processes reach it through `cloud_storage.environment`."""
    with CloudStorage(tmp_path_factory.mktemp("cloud-storage")) as server:
        yield server


@pytest.fixture
def server(cloud_storage: CloudStorage, monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudStorage]:
    """The Cloud Storage server for this process, with the empty bucket `b` and without faults."""
    for name, value in cloud_storage.environment.items():
        monkeypatch.setenv(name, value)
    cloud_storage.faults.clear()
    cloud_storage.buckets.create("b")
    for name in cloud_storage.buckets.names("b"):
        cloud_storage.buckets.delete("b", name)
    yield cloud_storage
    cloud_storage.faults.clear()
