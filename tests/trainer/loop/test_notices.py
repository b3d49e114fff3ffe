"""Notices from localvertex's metadata server, which a local job finds by GCE_METADATA_HOST."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from exact_resume.files import linux
from exact_resume.workers import notices
from localvertex.processes.network.metadata_server import MAINTENANCE_EVENT, PREEMPTED, MetadataServer
from vertex_testing.cloud_storage.server import CloudStorage


@pytest.fixture
def server() -> Iterator[MetadataServer]:
    made = MetadataServer()
    yield made
    made.close()


@pytest.fixture
def watcher(server: MetadataServer) -> Iterator[notices.Watcher]:
    made = notices.watch({"GCE_METADATA_HOST": server.address, "NO_GCE_CHECK": "true"})
    yield made
    made.close()


def received(watcher: notices.Watcher, count: int) -> list[tuple[str, str]]:
    found: list[notices.Notice] = []
    deadline = time.monotonic() + 120
    while len(found) < count and time.monotonic() < deadline:
        found += watcher.pending()
        time.sleep(0.02)
    return sorted((notice.kind, notice.text) for notice in found)


def test_each_notice_is_received_once(server: MetadataServer, watcher: notices.Watcher) -> None:
    server.set(PREEMPTED, "TRUE")
    server.set(MAINTENANCE_EVENT, "TERMINATE_ON_HOST_MAINTENANCE")
    assert received(watcher, 2) == [("maintenance", "TERMINATE_ON_HOST_MAINTENANCE"), ("preempted", "TRUE")]
    server.set(MAINTENANCE_EVENT, "NONE")
    # Without a pause the next change may come before the watcher's next request.
    time.sleep(0.5)
    server.set(MAINTENANCE_EVENT, "MIGRATE_ON_HOST_MAINTENANCE")
    assert received(watcher, 1) == [("maintenance", "MIGRATE_ON_HOST_MAINTENANCE")]
    assert watcher.pending() == []


def test_a_notice_given_before_the_start_is_received(server: MetadataServer) -> None:
    server.set(PREEMPTED, "TRUE")
    watcher = notices.watch({"GCE_METADATA_HOST": server.address})
    assert received(watcher, 1) == [("preempted", "TRUE")]
    watcher.close()


def test_a_server_that_fails_is_asked_again(server: MetadataServer, monkeypatch: pytest.MonkeyPatch) -> None:
    real = notices.MetadataWatcher._ask
    failures: list[str] = []

    def ask(self: notices.MetadataWatcher, key: str, etag: str) -> tuple[str, str]:
        if len(failures) < 2:
            failures.append(key)
            raise OSError("HTTP 503")
        return real(self, key, etag)

    monkeypatch.setattr(notices.MetadataWatcher, "_ask", ask)
    watcher = notices.watch({"GCE_METADATA_HOST": server.address})
    server.set(PREEMPTED, "TRUE")
    assert received(watcher, 1) == [("preempted", "TRUE")]
    watcher.close()


def test_without_a_metadata_server_there_are_no_notices_and_nothing_waits() -> None:
    watcher = notices.watch({"GCE_METADATA_HOST": "127.0.0.1:9"})
    assert watcher.pending() == []
    watcher.close()
    assert isinstance(notices.watch({"NO_GCE_CHECK": "true"}), notices.NoMetadataServer)
    assert notices.watch({"NO_GCE_CHECK": "true"}).pending() == []


def test_outside_of_compute_engine_no_server_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = tmp_path / "product_name"
    monkeypatch.setattr(linux, "_PRODUCT_NAME", str(name))
    assert isinstance(notices.watch({}), notices.NoMetadataServer)
    name.write_text("Standard PC\n")
    assert isinstance(notices.watch({}), notices.NoMetadataServer)
    name.write_text("Google Compute Engine\n")
    monkeypatch.setattr(notices, "MetadataWatcher", str)
    assert notices.watch({}) == notices._HOST
    monkeypatch.setenv("EXACT_RESUME_PORTABLE", "1")
    assert isinstance(notices.watch({}), notices.NoMetadataServer)


def test_a_server_with_only_these_two_values_does_not_break_gs(
    server: MetadataServer, cloud_storage: CloudStorage
) -> None:
    """GCE_METADATA_HOST is asked for a token; a server without tokens must not matter where none is needed."""
    cloud_storage.buckets.create("b")
    cloud_storage.buckets.put("b", "x", b"content")
    environment = {**cloud_storage.environment, "GCE_METADATA_HOST": server.address}
    del environment["NO_GCE_CHECK"]
    program = "from exact_resume.files import storage; print(storage.read_bytes('gs://b/x'))"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300)
    assert done.stdout == "b'content'\n", done.stderr
    # Without a token: refused as anonymous, not hung and not another error.
    del environment["STORAGE_EMULATOR_HOST"]
    environment["HOME"] = environment["CLOUDSDK_CONFIG"] = "/nonexistent"
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300)
    assert "no valid credentials for Cloud Storage" in done.stderr
