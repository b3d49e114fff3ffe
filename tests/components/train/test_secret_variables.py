"""The program that reads secrets in a replica, as its image runs it: by its source, and with Python alone."""

import base64
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from components.train import secret_variables
from localvertex._base import step_endpoint

VERSION = "projects/my-project/secrets/hub/versions/3"
SECRET, TOKEN = "the-very-secret-value", "ya29.the-token"
PRINT = "import hashlib, os; print(hashlib.sha256(os.environ['HUB_TOKEN'].encode()).hexdigest())"


class Google:
    """The metadata server and Secret Manager on loopback."""

    def __init__(self) -> None:
        self.codes = [200]
        """Answers of Secret Manager in their order; the last one is repeated."""
        self.requests: list[str] = []
        google = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                google.requests.append(self.path)
                code, content = 403, {}
                if self.headers.get("Metadata-Flavor") == "Google":
                    code, content = 200, {"access_token": TOKEN}
                elif self.headers.get("Authorization") == f"Bearer {TOKEN}":
                    code = google.codes.pop(0) if len(google.codes) > 1 else google.codes[0]
                    content = {"payload": {"data": base64.b64encode(SECRET.encode()).decode()}}
                data = json.dumps(content).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]

    def run(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the program as a replica does, with this server in place of both of Google's."""
        source = Path(secret_variables.__file__).read_text()
        source = source.replace("https://secretmanager.googleapis.com", f"http://127.0.0.1:{self.port}")
        source = source.replace("(1.0, 4.0, 16.0)", "(0.01, 0.01, 0.01)")
        program = [sys.executable, "-I", "-S", "-c", source, f"HUB_TOKEN={VERSION}", "--", *words]
        environment = {"PATH": os.environ["PATH"], "GCE_METADATA_HOST": f"127.0.0.1:{self.port}", **variables}
        done = subprocess.run(program, capture_output=True, text=True, env=environment)
        for hidden in (SECRET, base64.b64encode(SECRET.encode()).decode(), TOKEN):
            assert hidden not in done.stdout + done.stderr
        return done


@pytest.fixture
def google() -> Iterator[Google]:
    found = Google()
    thread = threading.Thread(target=found.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


def test_the_command_gets_the_value_and_nothing_else_does(google: Google) -> None:
    # A variable of the image does not take its place.
    done = google.run(sys.executable, "-c", PRINT, HUB_TOKEN="of the image")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == hashlib.sha256(SECRET.encode()).hexdigest()
    assert google.requests[-1] == f"/v1/{VERSION}:access"


def test_the_exit_code_and_the_signals_are_the_commands(google: Google) -> None:
    assert google.run(sys.executable, "-c", "raise SystemExit(7)").returncode == 7
    assert google.run(sys.executable, "-c", "import os; os.kill(os.getpid(), 15)").returncode == -15
    assert "FileNotFoundError" in google.run("no-such-program").stderr


def test_a_service_that_is_not_available_is_asked_again(google: Google) -> None:
    google.codes = [503, 429, 200]
    assert google.run(sys.executable, "-c", PRINT).returncode == 0
    google.codes = [503]
    assert google.run(sys.executable, "-c", PRINT).returncode == 1


@pytest.mark.parametrize("code", [403, 404])
def test_a_refusal_is_one_line_and_the_command_does_not_start(google: Google, code: int) -> None:
    google.codes = [code]
    done = google.run(sys.executable, "-c", "print('started')")
    assert (done.returncode, done.stdout) == (1, "")
    line = f"error: secret HUB_TOKEN: {VERSION} cannot be read ({code}); see docs/any-training.md\n"
    assert (done.stderr, len(google.requests)) == (line, 2)


def test_a_local_run_asks_no_service_and_takes_the_users_own_variable(google: Google) -> None:
    assert secret_variables._LOCAL == step_endpoint.MARKER
    local = {step_endpoint.MARKER: "1"}
    done = google.run(sys.executable, "-c", PRINT, **local)
    expected = "error: secret HUB_TOKEN: set it in your shell and add --with-credentials\n"
    assert (done.returncode, done.stderr) == (1, expected)
    assert google.run(sys.executable, "-c", PRINT, HUB_TOKEN="own", **local).returncode == 0
    assert google.requests == []
