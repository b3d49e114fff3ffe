"""Notices of the metadata server, from localvertex's own: the one that a local job finds by GCE_METADATA_HOST."""

import http.client
import os
import subprocess
import sys
import time

import pytest

from localvertex.custom_jobs.metadata_server import MAINTENANCE_EVENT, PREEMPTED, MetadataServer
from trainer.cluster import notices


@pytest.fixture
def server():
    made = MetadataServer()
    yield made
    made.close()


@pytest.fixture
def watcher(server):
    made = notices.watch({"GCE_METADATA_HOST": server.address, "NO_GCE_CHECK": "true"})
    yield made
    made.close()


def heard(watcher, count):
    found = []
    deadline = time.monotonic() + 30
    while len(found) < count and time.monotonic() < deadline:
        found += watcher.pending()
        time.sleep(0.02)
    return sorted((notice.kind, notice.text) for notice in found)


def test_each_notice_is_heard_once_and_an_end_is_none(server, watcher):
    server.set(PREEMPTED, "TRUE")
    server.set(MAINTENANCE_EVENT, "TERMINATE_ON_HOST_MAINTENANCE")
    assert heard(watcher, 2) == [("maintenance", "TERMINATE_ON_HOST_MAINTENANCE"), ("preempted", "TRUE")]
    server.set(MAINTENANCE_EVENT, "NONE")
    # Values change faster than anybody asks: the watcher has to be back before the next one.
    time.sleep(0.5)
    server.set(MAINTENANCE_EVENT, "MIGRATE_ON_HOST_MAINTENANCE")
    assert heard(watcher, 1) == [("maintenance", "MIGRATE_ON_HOST_MAINTENANCE")]
    assert watcher.pending() == []


def test_a_notice_given_before_the_start_is_heard(server):
    server.set(PREEMPTED, "TRUE")
    watcher = notices.watch({"GCE_METADATA_HOST": server.address})
    assert heard(watcher, 1) == [("preempted", "TRUE")]
    watcher.close()


def test_a_server_that_fails_is_asked_again(server, monkeypatch):
    real, failures = notices.MetadataWatcher._ask, []

    def ask(self, key, etag):
        if len(failures) < 2:
            failures.append(key)
            raise http.client.HTTPException("HTTP 503")
        return real(self, key, etag)

    monkeypatch.setattr(notices.MetadataWatcher, "_ask", ask)
    watcher = notices.watch({"GCE_METADATA_HOST": server.address})
    server.set(PREEMPTED, "TRUE")
    assert heard(watcher, 1) == [("preempted", "TRUE")]
    watcher.close()


def test_where_nobody_answers_nothing_is_heard_and_nothing_waits():
    watcher = notices.watch({"GCE_METADATA_HOST": "127.0.0.1:9"})
    assert watcher.pending() == []
    watcher.close()
    assert isinstance(notices.watch({"NO_GCE_CHECK": "true"}), notices.NobodyToAsk)
    assert notices.watch({"NO_GCE_CHECK": "true"}).pending() == []


def test_a_machine_elsewhere_asks_nobody(monkeypatch, tmp_path):
    name = tmp_path / "product_name"
    monkeypatch.setattr(notices, "_PRODUCT_NAME", str(name))
    assert isinstance(notices.watch({}), notices.NobodyToAsk)
    name.write_text("Standard PC\n")
    assert isinstance(notices.watch({}), notices.NobodyToAsk)
    name.write_text("Google Compute Engine\n")
    assert notices._is_on_compute_engine()


def test_a_server_of_these_two_values_does_not_break_gs(server, cloud_storage):
    """TensorFlow asks GCE_METADATA_HOST for a token; one that knows none must not stop it where none is needed."""
    cloud_storage.buckets.create("b")
    cloud_storage.buckets.put("b", "x", b"content")
    told = {**cloud_storage.environment, "GCE_METADATA_HOST": server.address}
    del told["NO_GCE_CHECK"]
    program = "from trainer.files import storage; print(storage.read_bytes('gs://b/x'))"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env={**os.environ, **told}, capture_output=True, text=True, timeout=120)
    assert done.stdout == "b'content'\n", done.stderr
    # Without a token: refused as anonymous, not hung and not another error.
    del told["GOOGLE_AUTH_TOKEN_FOR_TESTING"]
    told["HOME"] = told["CLOUDSDK_CONFIG"] = "/nonexistent"
    done = subprocess.run(command, env={**os.environ, **told}, capture_output=True, text=True, timeout=120)
    assert "no credentials that Cloud Storage takes" in done.stderr
