"""A webhook that answers, fails or hangs: the log has one line about it, the end of the run, and never the address."""

import base64
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
import trustme
from kfp.dsl import PipelineTaskFinalStatus

from components.summary import report, webhook
from components.summary.report import report_end
from components.summary.webhook import VARIABLE
from components.train import secret_variables
from localvertex._base.userinput.errors import UserError
from tests.support.receiver import CLOSES, DRIPS, HANGS, PATH, Answer, Receiver, receiving
from vertex_testing.server import wait_until

JOB = "projects/123/locations/us-central1/pipelineJobs/image-training-1"
ERROR = "prepare: exit code 2: no images in <gs://b/f>"
SOURCE = f"the webhook in {VARIABLE}"
SECRET = "projects/my-project/secrets/hook"
TOKEN = "ya29.of-the-step"

Ended = Callable[..., str]
"""Takes an address, a state and a secret; returns what came of the notification, without the first line."""


@pytest.fixture
def ended(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Ended:
    """Ends a run, and checks that the first line is the run's own and that no part of the address is printed."""
    # Only a receiver that hangs needs short limits; on a slow machine any other one would break them.
    monkeypatch.setattr(webhook, "_TIMEOUT", (120, 120))
    monkeypatch.setattr(webhook, "_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(report, "_TOTAL_SECONDS", 600)

    def end(*, address: str = "", state: str = "FAILED", secret: str = "", error: str = ERROR) -> str:
        monkeypatch.delenv(VARIABLE, raising=False)
        if address:
            monkeypatch.setenv(VARIABLE, address)
        message = error if state == "FAILED" else None
        status = PipelineTaskFinalStatus(state, JOB, "run", 9 if message else None, message)
        expected = f"image-training-1: {state}" + (f": {message}" if message else "")
        with caplog.at_level(logging.DEBUG):
            assert report_end(status, secret=secret) == expected
        out, err = capfd.readouterr()
        first, *rest = out.splitlines()
        assert first == expected
        text = out + err + caplog.text
        assert [part for part in (PATH, *PATH.split("/")[2:], "SECRET") if part and part in text] == []
        assert err == ""
        return "\n".join(rest)

    return end


def test_a_receiver_gets_the_end_of_the_run_and_its_page(ended: Ended) -> None:
    with receiving(200) as receiver:
        assert ended(address=receiver.address) == f"notification sent to {SOURCE}"
        ((method, path, body),) = receiver.received
    assert (method, path) == ("POST", PATH)
    page = "https://console.cloud.google.com/vertex-ai/locations/us-central1/pipelines/runs/image-training-1"
    # In chats, `<` begins mentions of all members.
    error = ERROR.replace("<", "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}")
    assert body == {"text": f"image-training-1: FAILED\n{error}\n{page}?project=123"}


def test_nothing_is_sent_and_nothing_printed_unless_asked(ended: Ended) -> None:
    assert ended() == ""


@pytest.mark.parametrize(
    ("answer", "requests", "reason"),
    [
        (404, 1, "the answer was 404"),
        (302, 1, "the answer was 302"),
        (307, 1, "the answer was 307"),
        (500, 3, "the answer was 500"),
        (429, 3, "the answer was 429"),
        (CLOSES, 3, "the receiver cannot be reached or did not answer (ConnectionError)"),
    ],
)
def test_a_failure_is_one_line_and_the_end_of_the_run_stays(
    ended: Ended, monkeypatch: pytest.MonkeyPatch, answer: Answer, requests: int, reason: str
) -> None:
    # A step of a local run has no page in Google's console.
    monkeypatch.setenv("LOCALVERTEX_STEP", "x")
    with receiving(answer) as receiver:
        assert ended(address=receiver.address, error="no images") == f"notification not sent to {SOURCE}: {reason}"
        assert [path for _, path, _ in receiver.received] == [PATH] * requests
        assert receiver.received[0][2]["text"] == "image-training-1: FAILED\nno images"


def test_a_receiver_that_hangs_is_given_up(ended: Ended, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "_TIMEOUT", (120, 0.1))
    with receiving(HANGS) as receiver:
        found = ended(address=receiver.address, state="SUCCEEDED")
        assert found.startswith(f"notification not sent to {SOURCE}: the receiver cannot be reached or did not answer")
        # It may read the requests later than the client gives them up.
        wait_until(lambda: len(receiver.received) == 3)


def test_a_receiver_that_recovers_gets_the_message(ended: Ended) -> None:
    with receiving(500, CLOSES, 200) as receiver:
        assert ended(address=receiver.address, state="SUCCEEDED") == f"notification sent to {SOURCE}"
        assert len(receiver.received) == 3


def test_an_answer_without_an_end_is_given_up(ended: Ended, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "_TOTAL_SECONDS", 0.3)
    with receiving(DRIPS) as receiver:
        assert ended(address=receiver.address, state="SUCCEEDED") == "notification given up after 0.3 s"


def test_a_port_without_a_receiver(ended: Ended) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    found = ended(address=f"http://127.0.0.1:{port}{PATH}", state="SUCCEEDED")
    assert found.startswith(f"notification not sent to {SOURCE}: the receiver cannot be reached")


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        (f"http://hooks.example.com{PATH}", "the address does not begin with https://"),
        (f"http://127.0.0.1.example.com{PATH}", "the address does not begin with https://"),
        (f"file://{PATH}", "the address does not begin with https://"),
        (PATH, "the receiver cannot be reached"),
        (f"https://[::1{PATH}", "the receiver cannot be reached"),
        (f"https://example.com:99999{PATH}", "the receiver cannot be reached"),
        (f"https://{PATH}", "the receiver cannot be reached"),
        (f"http://example.invalid\\@localhost{PATH}", "the address does not begin with https://"),
    ],
)
def test_an_address_that_is_not_safe_is_refused_without_being_shown(ended: Ended, address: str, reason: str) -> None:
    assert ended(address=address, state="SUCCEEDED").startswith(f"notification not sent to {SOURCE}: {reason}")


def test_a_certificate_of_another_authority_is_not_accepted(ended: Ended) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("localhost").configure_cert(context)
    requests = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append(self.path)

    class Quiet(HTTPServer):
        def handle_error(self, *_: object) -> None:
            """Print nothing: the client refuses the certificate."""

    server = Quiet(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        found = ended(address=f"https://localhost:{server.server_port}{PATH}", state="SUCCEEDED")
    finally:
        server.shutdown()
        server.server_close()
    assert found.endswith("the receiver cannot be reached or did not answer (SSLError)")
    assert requests == []


def test_a_proxy_does_not_see_what_goes_to_this_machine(ended: Ended, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with receiving(200) as proxy, receiving(200) as receiver:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert ended(address=receiver.address, state="SUCCEEDED") == f"notification sent to {SOURCE}"
        assert (len(receiver.received), proxy.received) == (1, [])


def test_an_error_of_any_other_kind_is_named_without_its_text(ended: Ended, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(address: str, *_: object) -> None:
        raise RuntimeError(f"cannot post to {address}")

    monkeypatch.setattr(webhook, "post", fail)
    found = ended(address=f"https://example.com{PATH}", state="SUCCEEDED")
    assert found == f"notification not sent to {SOURCE}: RuntimeError"


def test_a_long_error_keeps_its_end_and_the_page(ended: Ended) -> None:
    with receiving(200) as receiver:
        ended(address=receiver.address, error="begin " + "x" * 90_000 + " ValueError: no images")
        ((_, _, body),) = receiver.received
    assert len(body["text"]) < 4096
    assert " ValueError: no images\nhttps://console.cloud.google.com/" in body["text"]


class SecretManager(Receiver):
    """Google's Secret Manager with one secret."""

    text: Any = base64.b64encode(b"x").decode()

    def body(self, request: BaseHTTPRequestHandler) -> Any:
        is_metadata = request.headers.get("Metadata-Flavor") == "Google"
        return {"access_token": TOKEN} if is_metadata else {"payload": {"data": self.text}}


@pytest.fixture
def secret_manager(monkeypatch: pytest.MonkeyPatch) -> Iterator[SecretManager]:
    """Both of Google's servers that a step reads a secret from."""
    assert secret_variables._SECRET_MANAGER == "https://secretmanager.googleapis.com"
    manager = SecretManager(200)
    monkeypatch.setattr(secret_variables, "_SECRET_MANAGER", manager.url)
    monkeypatch.setenv("GCE_METADATA_HOST", manager.url.removeprefix("http://"))
    yield manager
    manager.close()


def test_the_address_comes_from_the_secret(ended: Ended, secret_manager: SecretManager) -> None:
    with receiving(200) as receiver:
        secret_manager.text = base64.b64encode(f"{receiver.address}\n".encode()).decode()
        assert ended(secret=SECRET) == f"notification sent to the webhook in {SECRET}"
        assert len(receiver.received) == 1
        assert "Authorization" not in receiver.headers[0]
    _, (_, path, _) = secret_manager.received
    assert path == f"/v1/{SECRET}/versions/latest:access"
    assert secret_manager.headers[1]["Authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("text", [None, "not base64!"])
def test_a_secret_without_a_text_is_one_line(ended: Ended, secret_manager: SecretManager, text: Any) -> None:
    secret_manager.text = text
    assert f": {SECRET}/versions/latest cannot be read (" in ended(secret=SECRET)


def test_a_refused_secret_names_the_way_on(ended: Ended, secret_manager: SecretManager) -> None:
    secret_manager._answers = [200, 403]
    assert ended(secret=SECRET).endswith("cannot be read (403); see docs/notifications.md for the role")


def test_a_local_run_uses_no_google_service(
    ended: Ended, secret_manager: SecretManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCALVERTEX_STEP", "x")
    found = ended(secret=SECRET)
    assert found == f"notification not sent to {SECRET}: a local run uses no Google service; set {VARIABLE}"
    assert secret_manager.received == []


@pytest.mark.parametrize(
    "name", [f"https://hooks.example.com{PATH}", "my-hook", f"{SECRET}/versions/", f"{SECRET}/x", "projects/p/secrets/"]
)
def test_a_name_that_is_not_a_resource_is_refused_without_being_shown(ended: Ended, name: str) -> None:
    with pytest.raises(UserError) as refused:
        webhook.secret_version(name)
    assert name not in str(refused.value)
    assert "projects/PROJECT/" in str(refused.value)
    assert webhook.secret_version(f"{SECRET}/versions/7") == f"{SECRET}/versions/7"
