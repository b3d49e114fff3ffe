"""The trainer hears what localvertex's metadata server announces."""

import time

from localvertex.custom_jobs.metadata_server import MAINTENANCE_EVENT, PREEMPTED, MetadataServer
from trainer.cluster import notices


def test_notices_of_the_local_metadata_server_are_heard_and_those_of_the_next_machine_too() -> None:
    server = MetadataServer()
    watcher = notices.watch({"GCE_METADATA_HOST": server.address, "NO_GCE_CHECK": "true"})
    try:
        server.set(MAINTENANCE_EVENT, "TERMINATE_ON_HOST_MAINTENANCE")
        assert _heard(watcher) == ("maintenance", "TERMINATE_ON_HOST_MAINTENANCE")
        server.set(PREEMPTED, "TRUE")
        assert _heard(watcher) == ("preempted", "TRUE")
        assert watcher.pending() == []
    finally:
        watcher.close()
        server.close()


def _heard(watcher: notices.Watcher) -> tuple[str, str]:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for notice in watcher.pending():
            return notice.kind, notice.text
        time.sleep(0.01)
    raise AssertionError("nothing was heard in 30 s")
