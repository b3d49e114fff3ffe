"""Clients that only hold connections need no token; they can neither stop a run nor keep the server from ending."""

import resource
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import requests

from vertex_testing.server import Server, wait_until

pytestmark = pytest.mark.slow

NUM_FILES = 520
"""Files that the server may open; by default Linux permits 1024."""


def connected(port: int) -> socket.socket:
    """Open a connection."""
    return socket.create_connection(("127.0.0.1", port), timeout=3)


def port_of(server: Server) -> int:
    return int(server.url.rpartition(":")[2])


@contextmanager
def flooded(port: int) -> Iterator[None]:
    """Hold more connections than the server may open."""
    with ExitStack() as held:
        for _ in range(NUM_FILES + 10):
            with suppress(OSError):
                held.enter_context(connected(port))
        yield


def job(go: Path) -> dict[str, Any]:
    """Return a custom job that runs until a file exists."""
    code = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.02)"
    container = {"imageUri": "python:3.11", "command": ["python", "-c", code, str(go)]}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": "1", "containerSpec": container}
    return {"displayName": "job", "jobSpec": {"workerPoolSpecs": [pool], "scheduling": {"disableRetries": True}}}


def test_connections_without_a_token_leave_files_to_runs(start_server: Callable[..., Server], tmp_path: Path) -> None:
    server = start_server("--allow-host-commands")
    hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (NUM_FILES, hard))
    grpc = int(server.text.partition('api_endpoint="localhost:')[2].partition('"')[0])
    for port in (port_of(server), grpc):
        go = tmp_path / str(port)
        created = server.call("POST", "customJobs", job(go)).json()["name"].rpartition("/")[2]
        wait_until(partial(_is_running, server, created))
        with flooded(port):
            go.touch()
            # The server cannot be asked now.
            file = server.work_dir / "api" / "customJobs" / f"{created}.json"
            wait_until(partial(_has_succeeded, file))
        wait_until(lambda: _is_answering(server))
    assert "Too many open files" not in server.text


def _is_running(server: Server, number: str) -> bool:
    return "startTime" in server.call("GET", f"customJobs/{number}").json()


def _has_succeeded(file: Path) -> bool:
    return "JOB_STATE_SUCCEEDED" in file.read_text()


def _is_answering(server: Server) -> bool:
    with suppress(requests.ConnectionError):
        return bool(server.get().status_code == 200)
    return False


def test_no_client_keeps_the_server_from_ending(start_server: Callable[..., Server]) -> None:
    server = start_server()
    host = server.url.removeprefix("http://")
    bucket = server.work_dir / "buckets" / "data"
    bucket.mkdir(parents=True)
    _sparse(bucket / "large", 1 << 30)
    (bucket / "text.txt").write_bytes(b"x" * (16 << 20))
    token = server.headers["Authorization"]
    with ExitStack() as held:
        for name in ("large", "text.txt"):
            unread = held.enter_context(socket.socket())
            unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            unread.connect(("127.0.0.1", port_of(server)))
            request = f"GET /storage/v1/b/data/o/{name}?alt=media HTTP/1.1\r\nHost: {host}\r\nAuthorization: {token}"
            unread.sendall(f"{request}\r\n\r\n".encode())
            assert unread.recv(12) == b"HTTP/1.1 200"
        stranger = held.enter_context(connected(port_of(server)))
        head = f"POST /local/session HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        stranger.sendall(f"{head}Content-Length: 1000000\r\n\r\n".encode())
        assert server.get().status_code == 200
        is_over = threading.Event()
        held.callback(is_over.set)
        threading.Thread(target=_drip, args=(stranger, is_over), daemon=True).start()
        server.end()
    assert "Traceback" not in server.text


def _drip(connection: socket.socket, is_over: threading.Event) -> None:
    """Send a byte of a body from time to time."""
    with suppress(OSError):
        while not is_over.wait(0.5):
            connection.sendall(b"x")


def _sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)
