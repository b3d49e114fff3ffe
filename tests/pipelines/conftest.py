"""The real command line, against `localvertex serve` or a service whose responses the test writes."""

import json
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from kfp import compiler, dsl

from pipelines.__main__ import main
from vertex_testing.in_process import call

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def pipelines(tmp_path: Path, repository: Path) -> Command:
    """Calls `python -m pipelines ...` in the test's folder, as a user without credentials."""

    def run(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = environment_without_credentials(tmp_path, repository) | variables
        return call(main, arguments, cwd=tmp_path, environment=environment, program="pipelines")

    return run


@pytest.fixture
def pipelines_process(tmp_path: Path, repository: Path) -> Command:
    """Runs `python -m pipelines ...` in its own process, as a user without credentials."""

    def run(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "pipelines", *map(str, arguments)]
        environment = environment_without_credentials(tmp_path, repository) | variables
        return subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)

    return run


def environment_without_credentials(home: Path, repository: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GOOGLE_", "CLOUDSDK_"))}
    return kept | {"HOME": str(home), "NO_GCE_CHECK": "true", "PYTHONPATH": str(repository)}


@pytest.fixture(scope="session")
def divide_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compiled pipeline that divides: with `by` 0 its only step fails, and `n` has no default."""

    @dsl.component(base_image="python:3.11", install_kfp_package=False)
    def divide(n: int, by: int) -> float:
        return n / by

    @dsl.pipeline(name="divide")
    def graph(n: int, by: int = 1, share: float = 0.5, names: list = ["a"], exact: bool = True) -> None:  # noqa: B006
        divide(n=n, by=by).set_caching_options(False)

    path = tmp_path_factory.mktemp("compiled") / "divide.json"
    with warnings.catch_warnings():
        # kfp 2.17 deprecates JSON output, which Vertex AI's console accepts.
        warnings.simplefilter("ignore")
        compiler.Compiler().compile(graph, str(path))
    return path


@pytest.fixture
def service() -> Iterator[Callable[..., str]]:
    """Starts an HTTP server with the test's responses, (method, path) -> (code, body), and returns its URL."""
    servers: list[ThreadingHTTPServer] = []

    def start(answer: Callable[[str, str], tuple[int, dict[str, Any]]]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                code, body = answer(self.command, self.path)
                data = json.dumps(body).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_port}"

    yield start
    for each in servers:
        each.shutdown()
        each.server_close()
