"""Wrong and hostile requests: each gets Google's JSON error, and the server keeps running."""

import json
import re
import socket
from typing import Any

import psutil
import pytest

from vertex_testing.server import Server

pytestmark = pytest.mark.slow

WRONG = {
    "no JSON": (b"{", "the body is not JSON"),
    "a list": (b"[]", "must be a JSON object"),
    "not UTF-8": (b"\xff\xfe", "not UTF-8"),
    "a key twice": (b'{"a": 1, "a": 2}', "twice"),
    "NaN": (b'{"displayName": NaN}', "NaN is not a number"),
    "nested too deep": (b'{"pipelineSpec": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001, "too deeply"),
    "an unknown field": (b'{"displayname": "x"}', 'no field named "displayname"'),
    "a wrong type": (b'{"displayName": 3}', "displayName"),
    "a wrong enum": (b'{"runtimeConfig": {"failurePolicy": "NEVER"}}', "NEVER"),
    "no pipeline": (b'{"displayName": "x"}', "pipelineSpec is missing"),
    "a spec of another shape": (b'{"pipelineSpec": {"pipelineInfo": 3}}', "not a compiled pipeline"),
    "a null byte": (
        b'{"pipelineSpec": {"root": {}, "deploymentSpec": {}, "schemaVersion": "\\u0000"}}',
        "expected 2.0.0 or 2.1.0",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_body_is_refused_with_the_reason(server: Server, name: str) -> None:
    body, reason = WRONG[name]
    headers = {"Content-Type": "application/json"}
    path = "/v1/projects/p/locations/l/pipelineJobs"
    answer = server.request("POST", path, data=body, headers=headers)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["status"]) == (400, 400, "INVALID_ARGUMENT"), error
    assert re.search(reason, error["message"]), error
    assert "\n" not in error["message"]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/projects/p/locations/l/pipelineJobs/..%2f..%2fetc%2fpasswd",
        "/v1/projects/p/locations/l/pipelineJobs/%2e%2e",
        "/v1/projects/p/locations/l/pipelineJobs/../../../../../etc/passwd",
        "/v1/projects/../locations/l/pipelineJobs",
        "/v1/projects/p/locations/l/pipelineJobs/a%00b",
        "/v1/projects/p/locations/l/pipelineJobs/" + "a" * 4000,
        "/v1/projects/p/locations/l/schedules/.lock",
        "/v1/projects/p/locations/l/operations/1%2f..%2f..%2fsmall",
        "/v2/projects/p/locations/l/pipelineJobs/x",
        "/v1/projects/p/locations/l/cats/1",
    ],
)
def test_a_path_that_leads_elsewhere_is_not_found(server: Server, path: str) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    token = server.headers["Authorization"]
    # Sent over a socket, because client libraries normalise such paths.
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}:{port}", f"Authorization: {token}", "Connection: close", "", ""]
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall("\r\n".join(lines).encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 404"), answer[:300]
    assert b'"NOT_FOUND"' in answer
    assert b"root:" not in answer


@pytest.mark.parametrize("job_id", ["../x", "Upper", "api", "models", "-x", "a" * 129, "a/b", "1st"])
def test_an_id_that_cannot_name_a_run_is_refused(server: Server, job_id: str, small_pipeline: Any) -> None:
    body = {"pipelineSpec": json.loads(small_pipeline.read_text())}
    answer = server.call("POST", "pipelineJobs", body, params={"pipelineJobId": job_id})
    assert (answer.status_code, answer.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")


def test_a_body_of_100_megabytes_is_refused(server: Server) -> None:
    body = b'{"displayName": "' + b"x" * (100 << 20) + b'"}'
    path = "/v1/projects/p/locations/l/pipelineJobs"
    for data in (body, (body[i : i + (1 << 20)] for i in range(0, len(body), 1 << 20))):
        answer = server.request("POST", path, data=data, headers={"Content-Type": "application/json"}, timeout=120)
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, 413)


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Host": "evil.example:80"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
    ],
)
def test_requests_that_a_foreign_web_page_could_send_are_refused(
    server: Server, headers: dict[str, str], code: int
) -> None:
    path = "/v1/projects/p/locations/l/pipelineJobs"
    answer = server.request("POST", path, data=b"{}", headers={"Content-Type": "application/json"} | headers)
    assert answer.status_code == code
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]
    assert server.request("OPTIONS", path, headers={"Origin": "https://evil.example"}).status_code in (403, 405)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ({"filter": 'display_name="x'}, "cannot read"),
        ({"filter": "colour=red"}, "unknown field 'colour'"),
        ({"filter": "(" * 500}, "too deeply"),
        ({"filter": "display_name="}, "expected field, operator and value"),
        ({"orderBy": "colour"}, "orderBy"),
        ({"pageSize": "-1"}, "pageSize"),
        ({"pageToken": "abc"}, "pageToken"),
        ({"readMask": "colour"}, "readMask"),
    ],
)
def test_a_wrong_query_is_refused_with_the_reason(server: Server, query: dict[str, str], reason: str) -> None:
    answer = server.call("GET", "pipelineJobs", params=query)
    assert answer.status_code == 400
    assert re.search(reason, answer.json()["error"]["message"])


def test_the_server_listens_on_the_loopback_interface_only(server: Server) -> None:
    addresses = {
        each.laddr.ip for each in psutil.Process(server.process.pid).net_connections() if each.status == "LISTEN"
    }
    # gRPC also listens on IPv6 where there is one.
    assert "127.0.0.1" in addresses
    assert addresses <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
