"""Answers of a real loopback server that are lost, or that do not come from Vertex AI, as one line."""

import json
import re
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Reply = Callable[[socket.socket], None]
PORTAL = b"<!doctype html><html><head><title>Guest\n Wi-Fi</title></head><body>Sign in</body></html>"
JOB = re.compile(r"divide-\d{14}")


@pytest.fixture
def raw_service() -> Iterator[Callable[[Reply], tuple[str, list[str]]]]:
    """Starts a server that reads whole requests and replies as the test says; returns its URL and the request lines."""
    servers: list[socketserver.ThreadingTCPServer] = []

    def start(reply: Reply) -> tuple[str, list[str]]:
        lines: list[str] = []

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                line = self.rfile.readline().decode()
                length = 0
                while (header := self.rfile.readline().decode().strip().lower()) != "":
                    length = int(header.partition(":")[2]) if header.startswith("content-length:") else length
                self.rfile.read(length)
                lines.append(line)
                reply(self.connection)

        servers.append(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_address[1]}", lines

    yield start
    for each in servers:
        each.shutdown()
        each.server_close()


def http(status: str, body: bytes, *, kind: str = "text/html", length: int | None = None) -> Reply:
    """Return a reply; `length` is the announced one, if it is not that of the body."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nConnection: close\r\n"
    head += f"Content-Length: {len(body) if length is None else length}\r\n\r\n"
    return lambda connection: connection.sendall(head.encode() + body)


def reset(connection: socket.socket) -> None:
    """Reset the connection instead of an answer."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.close()


def failed(done: Any) -> str:
    """Return the one-line error of a failed command."""
    assert done.returncode == 1, done.stdout + done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    return str(line.removeprefix("error: "))


LOST: dict[str, Reply] = {
    "closed": lambda connection: None,
    "reset": reset,
    "cut off": http("200 OK", b'{"name": "pro', kind="application/json", length=500),
    "garbage": lambda connection: connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "portal": http("200 OK", PORTAL),
    "not utf-8": http("200 OK", b"\xff\xfe{", kind="application/json"),
    "empty": http("200 OK", b""),
    "a list": http("200 OK", b"[1]", kind="application/json"),
    "an object": http("200 OK", b'{"status": "ok"}', kind="application/json"),
    "half JSON": http("200 OK", b'{"name": "pro', kind="application/json"),
    "bad gateway": http("502 Bad Gateway", b"<html><title>502</title></html>"),
    "error of another API": http("500 Oops", b'{"error": "boom"}', kind="application/json"),
    "error without a code": http("400 Bad", b'{"error": "bad"}', kind="application/json"),
    "unavailable": http("503 Busy", json.dumps({"error": {"message": "overloaded"}}).encode(), kind="application/json"),
}


@pytest.mark.parametrize("reply", LOST.values(), ids=LOST)
def test_a_lost_answer_names_the_job_that_may_be_running_and_how_to_look(
    pipelines: Any, raw_service: Any, divide_file: Path, reply: Reply
) -> None:
    url, requests = raw_service(reply)
    line = failed(pipelines("submit", divide_file, "--endpoint", url, "-p", "n=1"))
    (request,) = requests
    sent = request.partition("pipelineJobId=")[2].partition("&")[0].split()[0]
    assert JOB.fullmatch(sent)
    assert line.endswith(f"; {sent} may be running: look at {url}/ before you submit again")
    assert len(line) < 400


def test_the_job_of_a_lost_answer_can_be_found_by_its_name(pipelines: Any, raw_service: Any, divide_file: Path) -> None:
    url, _ = raw_service(LOST["closed"])
    line = failed(pipelines("submit", divide_file, "--endpoint", url, "-p", "n=1"))
    reason = "the answer was lost: Remote end closed connection without response"
    assert line.startswith(f"{url} is not available ({reason}); is the network up")


REFUSED: dict[str, tuple[Reply, str]] = {
    "proxy": (
        http("403 Forbidden", PORTAL),
        "answered 403 with an HTML page ('Guest Wi-Fi') instead of the API's JSON",
    ),
    "not here": (http("404 Not Found", b"<h1>no</h1>"), "answered 404 with '<h1>no</h1>' instead of the API's JSON"),
    "refused": (
        http("400 Bad", b'{"error": {"code": 400, "message": "no"}}', kind="application/json"),
        "refused it (no)",
    ),
}


@pytest.mark.parametrize(("reply", "message"), [pair for pair in REFUSED.values()], ids=REFUSED)
def test_a_refused_request_does_not_claim_that_a_job_may_be_running(
    pipelines: Any, raw_service: Any, divide_file: Path, reply: Reply, message: str
) -> None:
    url, _ = raw_service(reply)
    line = failed(pipelines("submit", divide_file, "--endpoint", url, "-p", "n=1"))
    assert message in line
    assert "may be running" not in line


def test_a_request_that_was_never_sent_started_nothing(pipelines: Any, divide_file: Path) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}"
        line = failed(pipelines("submit", divide_file, "--endpoint", url, "-p", "n=1"))
    assert line.startswith(f"{url} is not available (it cannot be reached: ")
    assert "may be running" not in line


def test_a_captive_portal_is_named(pipelines: Any, raw_service: Any, divide_file: Path) -> None:
    url, _ = raw_service(LOST["portal"])
    line = failed(pipelines("submit", divide_file, "--endpoint", url, "-p", "n=1"))
    found = "it answered with an HTML page ('Guest Wi-Fi') instead of the API's JSON"
    assert line.startswith(f"{url} is not available ({found}")


@pytest.mark.parametrize("reply", [LOST["portal"], LOST["closed"], LOST["a list"]], ids=["portal", "closed", "a list"])
def test_schedules_get_one_line_too(pipelines: Any, raw_service: Any, reply: Reply) -> None:
    url, _ = raw_service(reply)
    line = failed(pipelines("schedule", "list", "--endpoint", url))
    assert line.startswith(
        (f"{url} is not available (it answered with ", f"{url} is not available (the answer was lost: ")
    )
