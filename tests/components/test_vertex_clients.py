"""Steps of a local run never call Google; errors of calls are one line, and retried where that helps."""

import functools
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from google.auth import exceptions

from components import vertex_clients
from components.vertex_clients import NotFoundError, call
from localvertex._base.step_endpoint import VARIABLE, StepEndpoint, write
from localvertex._base.userinput.errors import UserError
from trainer.command_line import TrainingError
from vertex_testing.own_endpoint import reachable

TOKEN = "t" * 43

PROGRAM = """\
import sys
from trainer.command_line import report_errors
from components.registry.registry import Registry
report_errors(Registry(region="us-central1", pipeline_root=sys.argv[1]).version)("pets", "champion")
"""


@pytest.fixture
def planted(tmp_path: Path) -> dict[str, str]:
    """Credentials of a user in all places, and no address of a registry."""
    key = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"}
    home = tmp_path / "home"
    for path in (home / "key.json", home / ".config" / "gcloud" / "application_default_credentials.json"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(key))
    return {
        "HOME": str(home),
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(Path(__file__).parents[3]),
        "GOOGLE_APPLICATION_CREDENTIALS": str(home / "key.json"),
        "GOOGLE_CLOUD_PROJECT": "victim",
        "CLOUD_ML_PROJECT_ID": "victim",
        "GOOGLE_CLOUD_REGION": "us-central1",
    }


def missing(path: Path) -> None:
    """Write nothing."""


def open_to_others(path: Path) -> None:
    write(path, StepEndpoint(address="http://127.0.0.1:1", token=TOKEN))
    path.chmod(0o640)


def garbage(path: Path) -> None:
    path.write_bytes(b"\xff\x00{")
    path.chmod(0o600)


def google(path: Path) -> None:
    path.write_text(json.dumps({"address": "https://us-central1-aiplatform.googleapis.com", "token": TOKEN}))
    path.chmod(0o600)


def linked(path: Path) -> None:
    write(path.with_name("target"), StepEndpoint(address="http://127.0.0.1:1", token=TOKEN))
    path.symlink_to("target")


def nested(path: Path) -> None:
    path.write_text("[" * 1500)
    path.chmod(0o600)


FILES: list[tuple[Callable[[Path], None], str]] = [
    (missing, "does not exist: the run has ended"),
    (open_to_others, "can be read by other users"),
    (garbage, "is not an address with a token"),
    (google, "is not an address with a token"),
    (nested, "is not an address with a token"),
    (linked, "cannot be read"),
]


@pytest.mark.parametrize(("prepare", "message"), FILES, ids=lambda each: getattr(each, "__name__", None))
def test_a_file_that_cannot_be_trusted_is_refused_in_one_line(
    prepare: Callable[[Path], None], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "endpoint.json"
    prepare(path)
    monkeypatch.setenv(VARIABLE, str(path))
    for root in (str(tmp_path), "gs://bucket/root"):
        with pytest.raises(UserError, match=message) as caught:
            vertex_clients.models("us-central1", root)
        assert "\n" not in str(caught.value)
        assert TOKEN not in str(caught.value)


@functools.cache
def without_network() -> tuple[str, ...]:
    """Return the words before a command that must not find a network; none where bubblewrap does not run."""
    words = (shutil.which("bwrap") or "", *"--unshare-net --dev-bind / / --die-with-parent".split())
    works = words[0] and subprocess.run([*words, "true"], capture_output=True).returncode == 0
    return words if works else ()


@pytest.mark.parametrize("root", ["runs", "/tmp/runs", "gs://bucket/root"])
@pytest.mark.parametrize("kind", ["none", "empty", "missing"])
def test_a_local_step_without_an_address_asks_nobody(
    kind: str, root: str, planted: dict[str, str], tmp_path: Path
) -> None:
    # A gs:// root is local where the marker of a step of localvertex is.
    env = planted | {"none": {}, "empty": {VARIABLE: ""}, "missing": {VARIABLE: str(tmp_path / "gone")}}[kind]
    env |= {"LOCALVERTEX_STEP": str(tmp_path)}
    words = [sys.executable, "-W", "ignore", "-c", PROGRAM, root]
    done = subprocess.run([*without_network(), *words], env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: "), done.stderr
    assert done.stderr.count("\n") == 1
    assert VARIABLE in done.stderr


def test_a_local_root_needs_no_marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (VARIABLE, "LOCALVERTEX_STEP"):
        monkeypatch.delenv(name, raising=False)
    for make in (vertex_clients.models, vertex_clients.endpoints, vertex_clients.predictions):
        with pytest.raises(UserError, match="this step of a local run has no registry"):
            make("us-central1", str(tmp_path))
    with pytest.raises(UserError, match="this step of a local run has no registry"):
        vertex_clients.parent("us-central1", str(tmp_path))


def test_with_the_variable_everything_goes_there_whatever_the_root(tmp_path: Path) -> None:
    with reachable(tmp_path):
        for root in (str(tmp_path), "gs://bucket/root", "/gcs/bucket/root"):
            client = vertex_clients.models("us-central1", root)
            parent = vertex_clients.parent("us-central1", root)
            assert call(client.list_models, {"parent": parent}, what="x") == []


class Service(ThreadingHTTPServer):
    """Answers with the given codes, then with an empty list."""

    codes: list[int]
    seen: list[str]
    text = b"{}"


class Handler(BaseHTTPRequestHandler):
    server: Service

    def do_GET(self) -> None:
        self.server.seen.append(self.path)
        code = self.server.codes.pop(0) if self.server.codes else 200
        error = {"error": {"code": code, "message": "first\nsecond", "status": "X"}}
        body = self.server.text if code == 200 else json.dumps(error).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Service]:
    monkeypatch.setattr(vertex_clients, "_PAUSES_SECONDS", (0.0, 0.0))
    server = Service(("127.0.0.1", 0), Handler)
    server.codes, server.seen = [], []
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    path = tmp_path / "endpoint.json"
    write(path, StepEndpoint(address=f"http://127.0.0.1:{server.server_port}", token=TOKEN))
    monkeypatch.setenv(VARIABLE, str(path))
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def listed(*, is_repeatable: bool = True) -> Any:
    client = vertex_clients.models("us-central1", "gs://b/r")
    what = "the models cannot be listed"
    return call(client.list_models, {"parent": "projects/p/locations/r"}, what=what, is_repeatable=is_repeatable)


@pytest.mark.parametrize(
    ("code", "kind", "advice", "num_calls"),
    [
        (400, UserError, "the service refused it", 1),
        (401, UserError, "the credentials were not accepted", 3),
        (403, UserError, "permission denied .*roles/aiplatform.user", 1),
        (404, NotFoundError, "not found", 1),
        (429, TrainingError, "quota exceeded .*later, or request more quota", 3),
        (500, TrainingError, "the service is not available .*later", 3),
        (501, UserError, "the service refused it", 1),
        (503, TrainingError, "the service is not available .*later", 3),
    ],
)
def test_an_error_is_one_line_and_retried_where_that_helps(
    service: Service, code: int, kind: type[Exception], advice: str, num_calls: int
) -> None:
    service.codes = [code] * 9
    with pytest.raises(kind, match=f"the models cannot be listed: {advice}") as caught:
        listed()
    assert len(service.seen) == num_calls
    assert "\n" not in str(caught.value)
    assert TOKEN not in str(caught.value)


def test_what_passes_is_not_an_error(service: Service) -> None:
    service.codes = [429, 503]
    assert listed() == []
    assert len(service.seen) == 3
    # The answer to the first call may have been lost, and not its effect.
    service.codes, service.seen = [429, 503], []
    with pytest.raises(TrainingError):
        listed(is_repeatable=False)
    assert len(service.seen) == 2


def test_a_metadata_server_that_does_not_answer_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vertex_clients, "_PAUSES_SECONDS", (0.0, 0.0))
    asked = []

    def method(**_: Any) -> str:
        asked.append(1)
        if len(asked) % 3:
            raise exceptions.TransportError("no answer")  # type: ignore[no-untyped-call]
        return "answer"

    assert call(method, {}, what="x") == "answer"
    with pytest.raises(TrainingError, match="x: the service is not available"):
        call(method, {}, what="x", is_repeatable=False)


def test_what_is_not_the_api_is_one_line(service: Service) -> None:
    service.text = b"<html>\n<title>Log in</title>"
    with pytest.raises(TrainingError, match="the models cannot be listed: the service is not available") as caught:
        listed()
    assert "\n" not in str(caught.value)


def test_an_endpoint_that_has_ended_is_one_line(service: Service, tmp_path: Path) -> None:
    (tmp_path / "endpoint.json").unlink()
    write(tmp_path / "endpoint.json", StepEndpoint(address="http://127.0.0.1:1", token=TOKEN))
    with pytest.raises(TrainingError, match="the models cannot be listed: the service is not available") as caught:
        listed()
    assert "\n" not in str(caught.value)


def test_no_proxy_gets_the_token(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{service.server_port}")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UserError, match="a proxy would get the token; add "):
        listed()
    assert service.seen == []
