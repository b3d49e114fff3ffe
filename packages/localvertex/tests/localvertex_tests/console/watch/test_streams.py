"""Streams of a real server: its end with open tabs, clients that do not read, and memory over a long time."""

import http.client
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import psutil
import pytest
import requests
from localvertex_tests.support import run_records

from localvertex.console.events.stream import MAX_STREAMS
from vertex_testing.server import Server, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def server(start_server: Callable[..., Server]) -> Server:
    """Start a server with one run whose step has a log."""
    found = start_server()
    run_id = run_records.write_job(found.work_dir, 1)
    (found.work_dir / run_id / "train").mkdir()
    log_of(found).write_text("first\n")
    return found


PIPELINE = {
    "pipelineInfo": {"name": "p"},
    "schemaVersion": "2.1.0",
    "sdkVersion": "kfp-2.14.0",
    "root": {"dag": {"tasks": {"train": {"componentRef": {"name": "comp"}, "taskInfo": {"name": "train"}}}}},
    "components": {"comp": {"executorLabel": "exec"}},
    "deploymentSpec": {"executors": {"exec": {"container": {"image": "python:3.11", "command": ["true"]}}}},
}


def log_of(server: Server) -> Path:
    """Return the log of the step."""
    return server.work_dir / "run-00001" / "train" / "log.txt"


def add(server: Server, line: str) -> None:
    """Add a line to the log."""
    with log_of(server).open("a") as file:
        file.write(f"{line}\n")


QUERY = "/local/events?run=run-00001&log=train"


def unread(server: Server, path: str = QUERY) -> socket.socket:
    """Request a stream and read nothing."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    connection = socket.create_connection((host, int(port)))
    # A small window: the server soon has to wait.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    token = server.headers["Authorization"]
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: {token}\r\n\r\n".encode())
    return connection


class Stream:
    """The stream of a tab that reads."""

    def __init__(self, server: Server) -> None:
        self._connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)
        self._connection.request("GET", QUERY, headers=server.headers)
        self._response = self._connection.getresponse()
        assert self._response.headers["Content-Type"].startswith("text/event-stream")

    def names(self) -> Iterator[str]:
        """Yield the names of the events."""
        while line := self._response.readline():
            if line.startswith(b"event: ") and line != b"event: alive\n":
                yield line.removeprefix(b"event: ").decode().strip()

    def close(self) -> None:
        """Close the tab."""
        self._response.close()
        self._connection.close()


Tab = Callable[[], Stream]


@pytest.fixture
def tab(server: Server) -> Iterator[Tab]:
    """Open tabs, which are closed at the end."""
    with ExitStack() as stack:

        def new() -> Stream:
            return stack.enter_context(closing(Stream(server)))

        yield new


def memory_bytes(server: Server) -> int:
    """Return the memory of the server's process."""
    pages = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_a_server_ends_although_tabs_are_open_and_one_of_them_does_not_read(server: Server, tab: Tab) -> None:
    log_of(server).write_text("x" * 100_000 + "\n")
    streams = [tab().names() for _ in range(3)]
    for each in streams:
        assert [next(each), next(each)] == ["run", "log"]
    with unread(server) as connection:
        wait_until(lambda: connection.recv(1, socket.MSG_PEEK))
        # More than the buffers of both sides take: the stream of this client waits for it.
        for _ in range(8):
            add(server, "y" * 250_000)
            assert next(streams[0]) == "log"
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(120)
    for each in streams[1:]:
        with suppress(ConnectionError):
            assert "end" not in list(each)


def test_clients_that_do_not_read_cost_no_memory(server: Server, tab: Tab) -> None:
    reader = tab().names()
    assert [next(reader), next(reader)] == ["run", "log"]
    connections = [unread(server) for _ in range(10)]
    for _ in range(4):
        add(server, "y" * 250_000)
        assert next(reader) == "log"
    before = memory_bytes(server)
    for _ in range(6):
        add(server, "y" * 250_000)
        assert next(reader) == "log"
    assert memory_bytes(server) - before < 16 << 20
    for each in connections:
        each.close()


def test_200_streams_that_are_opened_and_dropped_leave_nothing(server: Server) -> None:
    process = psutil.Process(server.process.pid)

    def fill() -> None:
        """Open as many streams as there may be, be refused, and drop all of them."""
        connections = [unread(server) for _ in range(MAX_STREAMS)]
        # A stream is counted before its first byte is sent.
        for each in connections:
            assert each.recv(1)
        refused = server.request("GET", QUERY)
        assert (refused.status_code, refused.json()["error"]["status"]) == (503, "UNAVAILABLE")
        assert "close tabs of the console" in refused.json()["error"]["message"]
        for each in connections:
            each.close()
        wait_until(lambda: server.request("HEAD", QUERY).status_code == 200)
        wait_until(lambda: process.num_fds() <= num_files + 2)

    server.request("GET", "/local/runs/run-00001").raise_for_status()
    num_files, num_threads = process.num_fds(), process.num_threads()
    fill()
    before = memory_bytes(server)
    fill()
    assert memory_bytes(server) - before < 8 << 20
    # 40 for requests and 8 for streams, however many there are.
    assert process.num_threads() <= num_threads + 48


def test_a_stream_ends_with_its_run(server: Server, tab: Tab) -> None:
    stream = tab().names()
    assert [next(stream), next(stream)] == ["run", "log"]
    (server.work_dir / "run-00001" / "run.json").unlink()
    assert list(stream) == ["problem", "end"]
    missing = server.request("GET", "/local/events?run=run-00001")
    assert missing.status_code == 404
    assert "does not exist" in missing.json()["error"]["message"]


@pytest.mark.soak
def test_memory_is_flat_over_5_000_requests(server: Server, tab: Tab) -> None:
    paths = ("", "/log?task=train", "/graph?closed=")
    with requests.Session() as session:
        session.headers.update(server.headers)

        def poll(times: int) -> None:
            for number in range(times):
                session.get(f"{server.url}/local/runs/run-00001{paths[number % len(paths)]}", timeout=60)
                if number % 100 == 0:
                    stream = tab()
                    assert next(stream.names()) == "run"
                    stream.close()

        poll(1_000)
        before = memory_bytes(server)
        poll(5_000)
    assert memory_bytes(server) - before < 8 << 20


def test_after_a_head_request_the_connection_is_free(server: Server) -> None:
    with closing(http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=60)) as connection:
        for method, path in (("HEAD", QUERY), ("GET", "/local/runs/run-00001")):
            connection.request(method, path, headers=server.headers)
            answer = connection.getresponse()
            assert (answer.status, len(answer.read()) > 0) == (200, method == "GET")
        for name, value in (("nosniff", "X-Content-Type-Options"), ("no-store", "Cache-Control")):
            assert answer.headers[value] == name


def test_what_a_step_puts_in_place_of_its_files_blocks_no_thread(server: Server) -> None:
    run = server.work_dir / "run-00001"
    (run / "pipeline.json").write_text(json.dumps(PIPELINE))
    known = {"project": "p", "region": "r", "uuid": "1", "work_dir": str(server.work_dir)}
    (run / "run.json").write_text(json.dumps(known | json.loads((run / "run.json").read_text())))
    (run / "train" / "log.txt").unlink()
    os.mkfifo(run / "train" / "log.txt")
    for path in ("log?task=train", f"log?task={'x' * 3000}"):
        answer = server.request("GET", f"/local/runs/run-00001/{path}")
        assert answer.status_code == (404 if "xxx" in path else 200), path
    assert server.end() == -signal.SIGTERM
