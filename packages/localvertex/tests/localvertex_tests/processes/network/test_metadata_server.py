"""The metadata server over HTTP, with the requests that programs send to Compute Engine's."""

import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.message import Message

import pytest

from localvertex.processes.network.metadata_server import MAINTENANCE_EVENT, PREEMPTED, MetadataServer


@pytest.fixture
def server() -> Iterator[MetadataServer]:
    """Start a metadata server."""
    server = MetadataServer()
    yield server
    server.close()


def ask(server: MetadataServer, path: str, headers: dict[str, str] | None = None) -> tuple[int, str, Message]:
    """Return status, body and headers of a response."""
    url = f"http://{server.address}/computeMetadata/v1/{path}"
    request = urllib.request.Request(url, headers={"Metadata-Flavor": "Google"} if headers is None else headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode(), answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), error.headers


def test_a_healthy_machine(server: MetadataServer) -> None:
    status, body, headers = ask(server, PREEMPTED)
    assert (status, body, headers["Metadata-Flavor"]) == (200, "FALSE", "Google")
    assert headers["ETag"]
    assert ask(server, MAINTENANCE_EVENT)[1] == "NONE"


@pytest.mark.parametrize(
    "headers", [{}, {"Metadata-Flavor": "x"}, {"Metadata-Flavor": "Google", "X-Forwarded-For": "a"}]
)
def test_a_request_without_its_header_is_refused(server: MetadataServer, headers: dict[str, str]) -> None:
    status, body, _ = ask(server, PREEMPTED, headers)
    assert status == 403
    assert "FALSE" not in body


@pytest.mark.parametrize("path", ["instance/other", "", "../instance/preempted"])
def test_other_values_do_not_exist(server: MetadataServer, path: str) -> None:
    assert ask(server, path)[0] == 404


def test_a_request_that_waits_is_answered_at_the_change(server: MetadataServer) -> None:
    path = f"{PREEMPTED}?wait_for_change=true&last_etag={ask(server, PREEMPTED)[2]['ETag']}"
    answers: list[tuple[int, str, Message]] = []
    waiting = threading.Thread(target=lambda: answers.append(ask(server, path)))
    waiting.start()
    server.set(MAINTENANCE_EVENT, "TERMINATE_ON_HOST_MAINTENANCE")
    waiting.join(0.3)
    assert waiting.is_alive()
    server.set(PREEMPTED, "TRUE")
    waiting.join(30)
    assert answers[0][:2] == (200, "TRUE")


def test_a_change_that_was_missed_is_reported_at_once(server: MetadataServer) -> None:
    etag = ask(server, PREEMPTED)[2]["ETag"]
    server.set(PREEMPTED, "TRUE")
    assert ask(server, f"{PREEMPTED}?wait_for_change=true&last_etag={etag}")[1] == "TRUE"
    assert ask(server, f"{PREEMPTED}?wait_for_change=true&last_etag=0")[1] == "TRUE"


def test_a_request_that_waits_has_a_timeout(server: MetadataServer) -> None:
    status, body, _ = ask(server, f"{PREEMPTED}?wait_for_change=true&timeout_sec=0.1")
    assert (status, body) == (200, "FALSE")
    assert ask(server, f"{PREEMPTED}?wait_for_change=true&timeout_sec=soon")[0] == 400


def test_a_replica_on_a_new_machine_sees_no_values_of_the_old_one(server: MetadataServer) -> None:
    server.set(PREEMPTED, "TRUE")
    server.reset()
    assert ask(server, PREEMPTED)[1] == "FALSE"
