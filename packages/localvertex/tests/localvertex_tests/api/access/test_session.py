"""The session of a browser: what its cookie allows, to which pages, and to processes of which user."""

import os
import re
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest
import requests
from localvertex_tests.api.access.test_token import NOBODY, as_root
from localvertex_tests.support.run_records import write_job

from localvertex.api.access.access import REFUSAL
from localvertex.api.rest import guard
from localvertex.console import static
from localvertex.processes.network import sockets
from vertex_testing.server import PARENT, Server

JSON = {"Content-Type": "application/json"}

CHANGES = [
    ("POST", f"/v1/{PARENT}/pipelineJobs"),
    ("PATCH", f"/v1/{PARENT}/schedules/x"),
    ("DELETE", f"/v1/{PARENT}/models/x"),
    ("POST", "/local/session"),
    ("PUT", "/upload/storage/v1/b/x/o"),
    ("POST", "/upload/storage/v1/b/x/o"),
]


@pytest.fixture
def cookie(server: Server) -> dict[str, str]:
    """Return the header that a browser sends after the exchange."""
    answer = server.request("POST", "/local/session", json={}, headers={"Origin": server.url})
    assert (answer.status_code, answer.text) == (204, "")
    return {"Cookie": answer.headers["Set-Cookie"].partition(";")[0]}


@pytest.mark.slow
def test_the_page_is_public_and_has_no_data(server: Server) -> None:
    token = server.headers["Authorization"].partition(" ")[2]
    for name in ("", "console/main.js", "console/ui/style.css"):
        answer = requests.get(f"{server.url}/{name}", timeout=60)
        assert answer.status_code == 200
        assert {name: answer.headers[name] for name in static.HEADERS} == static.HEADERS
        assert token not in answer.text
        assert str(server.work_dir) not in answer.text
        again = requests.get(f"{server.url}/{name}", headers={"If-None-Match": answer.headers["ETag"]}, timeout=60)
        assert (again.status_code, again.content) == (304, b"")
    for name in ("", "ui", "../static.py", "%2e%2e/static.py", "..%2fstatic.py", "%00", "x" * 5000, "/etc/passwd"):
        with closing(HTTPConnection(urlsplit(server.url).netloc, timeout=60)) as connection:
            connection.request("GET", f"/console/{name}")
            assert connection.getresponse().status == 404, name


@pytest.mark.slow
def test_files_of_the_page_have_lasting_addresses_and_answers_are_compressed(server: Server) -> None:
    token = server.headers["Authorization"].partition(" ")[2]
    index = requests.get(f"{server.url}/", timeout=60)
    (address,) = re.findall(r'src="(/console/\w{16}/main\.js)"', index.text)
    for path, is_kept in ((address, True), ("/console/main.js", False)):
        found = requests.get(server.url + path, timeout=60)
        assert (found.status_code, "immutable" in found.headers["Cache-Control"]) == (200, is_kept)
        assert found.headers["Content-Encoding"] == "gzip"
        plain = requests.get(server.url + path, headers={"Accept-Encoding": "identity"}, timeout=60)
        assert ("Content-Encoding" in plain.headers, plain.content) == (False, found.content)
    assert requests.get(f"{server.url}/console/{'0' * 16}/main.js", timeout=60).status_code == 404
    # Other tests of this server have runs as well.
    written = {write_job(server.work_dir, number) for number in range(20)}
    runs = server.get("/local/runs")
    assert runs.headers["Content-Encoding"] == "gzip"
    assert written <= {each["id"] for each in runs.json()["runs"]}
    assert token not in runs.text
    with server.request("GET", "/local/events", stream=True) as stream:
        assert "Content-Encoding" not in stream.headers


@pytest.mark.slow
def test_a_cookie_reads_everything_and_changes_only_from_the_console(server: Server, cookie: dict[str, str]) -> None:
    def code(method: str, path: str, **headers: str) -> tuple[int, bool]:
        answer = requests.request(method, server.url + path, data=b"{}", headers=cookie | headers, timeout=60)
        return answer.status_code, answer.status_code == 403 and answer.json()["error"]["message"] == REFUSAL

    for site, answer in (("same-origin", 200), ("none", 200), ("same-site", 403), ("cross-site", 403)):
        assert code("GET", f"/v1/{PARENT}/pipelineJobs", **{"Sec-Fetch-Site": site})[0] == answer
    assert code("GET", f"/v1/{PARENT}/pipelineJobs") == (200, False)
    assert code("POST", f"/v1/{PARENT}/pipelineJobs", Origin=server.url, **JSON) == (400, False)
    assert code("DELETE", f"/v1/{PARENT}/models/x", Origin=server.url) == (404, False)
    sent = {"Origin": server.url, "Sec-Fetch-Site": "same-site", **JSON}
    assert code("POST", f"/v1/{PARENT}/pipelineJobs", **sent) == (403, True)
    other = server.url.rpartition(":")[0] + ":1"
    for method, path in CHANGES:
        assert code(method, path, **JSON) == (403, True), (method, path)
        for origin in ("null", other, server.url.replace("127.0.0.1", "localhost"), "https" + server.url[4:]):
            assert code(method, path, Origin=origin, **JSON)[0] == 403, (method, path, origin)
        if method != "DELETE":
            for content_type in ("text/plain", "application/x-www-form-urlencoded", "image/png"):
                assert code(method, path, Origin=server.url, **{"Content-Type": content_type})[0] in (403, 415)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Let this process act as another user."""
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@as_root
@pytest.mark.slow
def test_the_cookie_is_worth_nothing_to_another_user(server: Server, cookie: dict[str, str]) -> None:
    board = server.call("POST", "tensorboards", {"displayName": "kept"}).json()["response"]["name"]
    headers = cookie | JSON | {"Origin": server.url}
    for method, path in (*CHANGES, ("GET", f"/v1/{PARENT}/pipelineJobs"), ("DELETE", f"/v1/{board}")):
        with as_nobody():
            answer = requests.request(method, server.url + path, data=b"{}", headers=headers, timeout=60)
        assert (answer.status_code, answer.json()["error"]["message"]) == (403, guard._OTHER_USER)
    parts = urlsplit(server.url)
    text = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    for _ in range(20):
        with as_nobody(), socket.create_connection((str(parts.hostname), parts.port or 0)) as client:
            # The kernel lists a closed socket as one of root.
            client.sendall(f"DELETE /v1/{board} HTTP/1.1\r\nHost: {parts.netloc}\r\n{text}\r\n".encode())
    with socket.create_connection((str(parts.hostname), parts.port or 0)) as own:
        # The kernel's table shows this address to all users.
        forged = headers | {"X-Forwarded-For": "{}:{}".format(*own.getsockname())}
        with as_nobody():
            assert requests.delete(f"{server.url}/v1/{board}", headers=forged, timeout=60).status_code == 403
    assert server.request("GET", f"/v1/{board}").json()["displayName"] == "kept"
    forwarded = headers | {"X-Forwarded-For": "203.0.113.5", "X-Forwarded-Proto": "https"}
    assert requests.delete(f"{server.url}/v1/{board}", headers=forwarded, timeout=60).status_code == 200


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6], ids=lambda family: family.name)
def test_the_user_at_the_other_end(family: socket.AddressFamily) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host = "127.0.0.1" if family is socket.AF_INET else "::ffff:127.0.0.1"

        def is_own(client: socket.socket) -> bool:
            client.connect((host, server.getsockname()[1]))
            accepted, address = server.accept()
            with accepted:
                found = sockets.is_from_own_user(address, accepted.getsockname())
                client.close()
                assert not sockets.is_from_own_user(address, accepted.getsockname())
                return found

        assert is_own(socket.socket(family))
        if os.geteuid() == 0:
            with as_nobody():
                client = socket.socket(family)
            assert not is_own(client)
    assert not sockets.is_from_own_user(("127.0.0.1", 1), ("127.0.0.1", 2))
    assert not sockets.is_from_own_user(None, None)
