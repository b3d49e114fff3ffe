"""A webhook that answers, fails or hangs: the log has one line about it, the end of the run, and never the address."""

import dataclasses
import socket
import ssl
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
import trustme

from components.summary.notification import webhook
from components.summary.notification.delivery import Limits
from components.summary.notification.message import FailedStep, message_of
from components.summary.notification.targets import VARIABLE
from tests.components.summary.notification.conftest import ERROR, JOB, PATIENT, Ended
from tests.support.receiver import CLOSES, DRIPS, HANGS, PATH, Answer, receiving
from vertex_testing.server import wait_until

SOURCE = f"the webhook in {VARIABLE}"


def test_a_receiver_gets_the_error_for_people_and_for_programs(ended: Ended) -> None:
    with receiving(200) as receiver:
        assert ended(address=receiver.address, state="SUCCEEDED") == f"notification sent to {SOURCE}"
        ((method, path, body),) = receiver.received
    assert (method, path) == ("POST", PATH)
    assert body["text"].startswith("image-training-1: SUCCEEDED\nhttps://console.cloud.google.com/")
    assert {name: body[name] for name in ("version", "pipeline_job", "state", "error", "failed_steps")} == {
        "version": 1,
        "pipeline_job": JOB,
        "state": "SUCCEEDED",
        "error": "",
        "failed_steps": [],
    }


def test_nothing_is_sent_and_nothing_printed_unless_asked(ended: Ended) -> None:
    assert ended() == ""


@pytest.mark.parametrize(
    ("answer", "requests", "reason"),
    [
        (404, 1, "the answer was 404"),
        (302, 1, "the answer was 302, a redirect, which is not followed"),
        (307, 1, "the answer was 307, a redirect, which is not followed"),
        (500, 3, "the answer was 500, in 3 attempts"),
        (429, 3, "the answer was 429, in 3 attempts"),
        (CLOSES, 3, "the connection failed or was closed without an answer, in 3 attempts"),
    ],
)
def test_a_failure_is_one_line_and_the_end_of_the_run_stays(
    ended: Ended, monkeypatch: pytest.MonkeyPatch, answer: Answer, requests: int, reason: str
) -> None:
    # A step of a local run: the state has the error itself, and Google is not asked.
    monkeypatch.setenv("LOCALVERTEX_STEP", "x")
    with receiving(answer) as receiver:
        assert ended(address=receiver.address) == f"notification not sent to {SOURCE}: {reason}"
        assert [path for _, path, _ in receiver.received] == [PATH] * requests
        assert receiver.received[0][2]["text"] == f"image-training-1: FAILED\n{ERROR}"


def test_a_receiver_that_hangs_is_given_up(ended: Ended) -> None:
    limits = dataclasses.replace(PATIENT, answer_seconds=0.1)
    with receiving(HANGS) as receiver:
        found = ended(address=receiver.address, state="SUCCEEDED", limits=limits)
        assert found == f"notification not sent to {SOURCE}: the receiver did not answer in time, in 3 attempts"
        # It may read the requests later than the client gives them up.
        wait_until(lambda: len(receiver.received) == 3)


def test_a_receiver_that_recovers_gets_the_message(ended: Ended) -> None:
    with receiving(500, CLOSES, 200) as receiver:
        assert ended(address=receiver.address, state="SUCCEEDED") == f"notification sent to {SOURCE}"
        assert len(receiver.received) == 3


def test_an_answer_without_an_end_is_given_up(ended: Ended) -> None:
    with receiving(DRIPS) as receiver:
        found = ended(address=receiver.address, state="SUCCEEDED", limits=Limits(total_seconds=0.3))
        assert found == "notification given up after 0.3 s"


def test_a_port_without_a_receiver(ended: Ended) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    found = ended(address=f"http://127.0.0.1:{port}{PATH}", state="SUCCEEDED")
    assert found.startswith(f"notification not sent to {SOURCE}: the connection failed")


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        (f"http://hooks.example.com{PATH}", "the address does not begin with https://"),
        (f"http://127.0.0.1.example.com{PATH}", "the address does not begin with https://"),
        (f"file://{PATH}", "the address does not begin with https://"),
        (PATH, "the address does not begin with https://"),
        (f"https://[::1{PATH}", "the address is not a URL"),
        (f"https://example.com:99999{PATH}", "the address is not a URL"),
        (f"https://{PATH}", "the address is not a URL with a host"),
        (f"https://example.com{PATH} x", "the address is not a URL with a host and without blanks"),
        (f"http://example.invalid\\@localhost{PATH}", "the address is not a URL with a host and without blanks"),
        (f"https://user:\N{KEY}@example.com{PATH}", "the address is not a URL with a host and without blanks"),
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
    assert found == f"notification not sent to {SOURCE}: the receiver's TLS certificate or protocol was not accepted"
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


MESSAGE: dict[str, Any] = {"text": "a <!channel> & <users/all>\nb", "state": "FAILED"}


@pytest.mark.parametrize(
    ("host", "body"),
    [
        ("example.com", MESSAGE),
        ("hooks.slack.com", MESSAGE | {"text": "a &lt;!channel&gt; &amp; &lt;users/all&gt;\nb"}),
        ("chat.googleapis.com", {"text": "a \u2039!channel> & \u2039users/all>\nb"}),
        ("team.webhook.office.com", {"text": "a \u2039!channel> & \u2039users/all>\nb"}),
    ],
)
def test_the_body_is_what_the_service_accepts(host: str, body: dict[str, Any]) -> None:
    assert webhook.body_for(host, MESSAGE) == body


@pytest.mark.parametrize("host", ["prod-1.westeurope.logic.azure.com", "d.1.environment.api.powerplatform.com"])
def test_teams_gets_a_card(host: str) -> None:
    (attachment,) = webhook.body_for(host, MESSAGE)["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert attachment["content"]["body"] == [
        {"type": "TextBlock", "text": "a <!channel> & <users/all>\n\nb", "wrap": True}
    ]


def test_a_long_error_keeps_its_end_and_the_page() -> None:
    text = "begin " + "x" * 90_000 + " ValueError: no images"
    jobs = {"projects/1/locations/r/customJobs/2": text}
    steps = [FailedStep(step="train", error=text, custom_jobs=jobs)]
    message = message_of(job=JOB, state="FAILED", error="", steps=steps, is_local=False)
    assert len(message["text"]) < 4096
    assert message["text"].count("ValueError: no images") == 2
    assert message["text"].splitlines()[-1].endswith("/pipelines/runs/image-training-1?project=123")
    assert message["failed_steps"][0]["error"] == text


def test_the_limits_are_a_minute_and_a_half_together() -> None:
    default = Limits()
    pauses = default.pause_seconds * (1 + 4)
    assert default.attempts * sum(default.timeout) + pauses <= default.total_seconds == 90
    assert PATIENT.attempts == default.attempts
