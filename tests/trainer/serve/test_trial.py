"""A server that ends, hangs or answers otherwise fails the trial, and none outlives it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pytest

from trainer.command_line import TrainingError
from trainer.serve import trial
from vertex_testing.processes import has_ended

STORED = [b"0123"] * 10
EXPECTED = np.full((len(STORED), 2), 0.5, np.float32)
SERVER = """
import http.server, json, os, sys, time
mode = sys.argv[1]
if mode == "ends at once":
    sys.exit("no such library")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        instances = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["instances"]
        if mode == "is killed":
            os.kill(os.getpid(), 9)
        if mode == "never answers":
            time.sleep(1000)
        if mode == "refuses":
            return self.answer(400, {"error": "instance 0: no"})
        if mode == "answers something else":
            return self.answer(200, ["text"])
        first = 0.5002 if mode == "differs" else 0.5
        if mode == "answers nan":
            first = float("nan")
        rows = 1 if mode == "leaves some out" else len(instances)
        self.answer(200, {"predictions": [{"probabilities": [first, 0.5]}] * rows})
    def answer(self, status, content):
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
sys.stdin.readline()
if mode != "prints no address":
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
if mode != "is never ready":
    print("ready", flush=True)
server.serve_forever()
"""


def tried(mode: str, seconds: float = 60.0) -> float:
    """The result of a trial of such a server, which must have ended."""
    processes = []
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(trial, "_COMMAND", (sys.executable, "-c", SERVER, mode))
            patch.setattr(trial, "_LIMIT_SECONDS", seconds)
            with trial.start_server() as server:
                processes.append(server._process)
                server.load("model")
                return server.check(STORED, EXPECTED)
    finally:
        assert processes[0].returncode is not None


def test_a_server_that_answers_as_the_network_passes() -> None:
    assert tried("works") == 0.0


def test_the_server_is_asked_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert tried("works") == 0.0


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("ends at once", r"it ended; exit code 1; no such library\); the model was not exported$"),
        ("is killed", r"; exit code -9\); the model was not exported$"),
        ("refuses", r"it answers 400: .*instance 0: no"),
        ("answers something else", r"TypeError"),
        ("leaves some out", r"it answers with probabilities of shape \(2, 2\), not \(10, 2\)"),
        ("differs", r"its probabilities differ from the network's by 0\.00019\d*, not 0\.0001"),
        ("answers nan", r"its probabilities differ from the network's by nan"),
    ],
)
def test_a_server_that_ends_or_answers_otherwise_fails_the_trial(mode: str, message: str) -> None:
    with pytest.raises(TrainingError, match=r"^the server fails in its trial \(.*" + message):
        tried(mode)


@pytest.mark.parametrize("mode", ["prints no address", "is never ready", "never answers"])
def test_a_server_that_is_not_ready_in_time_fails_the_trial(mode: str) -> None:
    # A slow machine may not even start it within this time.
    message = r"^the server fails in its trial \(.*(timed out|it was not ready 0\.5 s after the export)"
    with pytest.raises(TrainingError, match=message):
        tried(mode, seconds=0.5)


@pytest.mark.slow
def test_the_server_ends_with_a_killed_parent(repository: Path) -> None:
    """It waits for its model; the kernel closes its standard input."""
    parent = (
        "import sys, time; from trainer.serve import trial\n"
        "with trial.start_server() as server: print(server._process.pid, flush=True); time.sleep(1000)"
    )
    process = subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True, cwd=repository)
    assert process.stdout is not None
    server = psutil.Process(int(process.stdout.readline()))
    assert not has_ended(server)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    while not has_ended(server):
        time.sleep(0.05)
