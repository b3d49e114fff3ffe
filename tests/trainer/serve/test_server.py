"""The server as a process, without TensorFlow: loading, limits, a full queue and draining."""

import base64
import io
import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from trainer.serve import contract, server as listener

Answer = tuple[int, Any]
Call = Callable[..., Answer]


def instance() -> dict[str, str]:
    """A small image."""
    buffer = io.BytesIO()
    Image.new("RGB", (3, 3)).save(buffer, "PNG")
    return {"b64": base64.b64encode(buffer.getvalue()).decode()}


def ask(url: str, body: bytes | None = None) -> Answer:
    """The status and the JSON of an answer."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body), timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


class Server:
    """A server and its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        command = [sys.executable, "-m", "tests.support.served_network", str(folder)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().split()[-1]
        self._pool = ThreadPoolExecutor(200)

    def allow(self, name: str) -> None:
        (self.folder / name).touch()

    def health(self) -> Answer:
        return ask(f"{self.url}/health")

    def predict(self, **more: Any) -> "Future[Answer]":
        body = json.dumps({"instances": [instance()], **more}).encode()
        return self._pool.submit(ask, f"{self.url}/predict", body)

    def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            assert self.process.poll() is None
            time.sleep(0.02)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
        self._pool.shutdown()


@pytest.fixture
def server(tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.chdir(repository)
    started = Server(tmp_path)
    yield started
    started.close()


def test_the_server_loads_answers_and_drains(server: Server) -> None:
    loading = {"error": "the model is being loaded"}
    assert server.health() == (503, loading)
    assert server.predict().result()[0] == 503
    server.allow("load")
    server.until(lambda: server.health() == (200, {}))
    # While a request waits for the network, health still answers.
    first = server.predict()
    server.until((server.folder / "asked").exists)
    assert server.health() == (200, {})
    server.process.send_signal(signal.SIGTERM)
    server.until(lambda: server.health()[0] == 503)
    assert server.predict().result() == (503, {"error": "the server is shutting down; try again"})
    assert not first.done()
    server.allow("answer")
    assert first.result() == (200, {"predictions": [{"probabilities": [0.25, 0.75], "label": "dog"}]})
    assert server.process.wait(300) == 0
    assert "Traceback" not in server.process.communicate()[1]


def test_a_full_queue_and_a_large_body_are_refused_and_the_others_answered(server: Server) -> None:
    server.allow("load")
    server.until(lambda: server.health() == (200, {}))
    asked = [server.predict(parameters={}) for _ in range(100)]
    server.until(lambda: sum(each.done() for each in asked) >= 36)
    server.allow("answer")
    answers = [each.result() for each in asked]
    assert sorted(status for status, _ in answers) == [200] * 64 + [429] * 36
    refusal = {"error": "too many requests wait for their predictions; try again later"}
    found = {"predictions": [{"probabilities": [0.25, 0.75], "label": "dog"}]}
    assert {json.dumps(content) for _, content in answers} == {json.dumps(refusal), json.dumps(found)}
    assert ask(f"{server.url}/predict", b"x" * (64 * 2**20 + 1))[0] == 413
    assert ask(f"{server.url}/other") == (404, {"error": "GET /other is not a route of this server"})
    assert server.predict().result()[0] == 200


def test_answers_on_open_connections_do_not_wait_for_acknowledgements() -> None:
    free = contract.of_environment({"AIP_HTTP_HOST": "127.0.0.1", "AIP_HTTP_PORT": "0"})
    with listener._listen(free) as opened, socket.create_connection(opened.getsockname()):
        accepted, _ = opened.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
