"""Python's start-up file of steps: what it changes, what it leaves alone, and that no name of Google is looked up."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from localvertex._base import step_endpoint
from localvertex._base.step_endpoint import VARIABLE, StepEndpoint
from localvertex.credentials import step_python
from localvertex.credentials.isolation import NoCredentials, UserCredentials
from localvertex.credentials.step_python import sitecustomize
from localvertex.values import buckets

FOLDER = str(Path(step_python.__file__).parent)

WATCHED = """\
import sys
def watch(event, args):
    if event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.connect"):
        print(event, args[0] if event != "socket.connect" else args[1], flush=True)
sys.addaudithook(watch)
def attempt(call):
    try:
        call()
    except Exception as error:
        print(type(error).__name__, error)
"""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = f"{self.path} {self.headers['Host']} {self.headers['Authorization']}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def http_server() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def step(program: str, **variables: str) -> str:
    """Run a program with the variables of a step; return what it prints."""
    users = {name: text for name, text in os.environ.items() if not name.lower().endswith("_proxy")}
    with closing(NoCredentials()) as credentials:
        env = credentials.environment(users | {each: variables.pop(each) for each in [*variables] if each != VARIABLE})
    done = subprocess.run([sys.executable, "-c", program], env=env | variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_library_looks_a_name_of_google_up() -> None:
    proxy = {"HTTPS_PROXY": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    program = WATCHED + (
        "import http.client, socket, urllib.request\n"
        "attempt(lambda: socket.getaddrinfo('bigquery.googleapis.com', 443))\n"
        "attempt(lambda: socket.gethostbyname(b'GoogleAPIs.com.'.decode()))\n"
        "attempt(lambda: socket.create_connection(('us-central1-aiplatform.googleapis.com', 443)))\n"
        "attempt(lambda: http.client.HTTPSConnection('storage.googleapis.com').request('GET', '/b/x'))\n"
        "request = urllib.request.Request('https://storage.googleapis.com/b/x', headers={'Authorization': 'x'})\n"
        "attempt(lambda: urllib.request.urlopen(request))\n"
        "attempt(lambda: urllib.request.urlopen('https://storage.googleapis.com/storage/v1/b/b/o/x'))\n"
        "attempt(lambda: urllib.request.urlopen('https://storage.googleapis.com/b/x', data=b'mine'))\n"
        "attempt(lambda: socket.socket().connect(('bigquery.googleapis.com', 443)))\n"
        "attempt(lambda: socket.socket().connect_ex(('bigquery.googleapis.com', 443)))\n"
        "proxied = http.client.HTTPSConnection('127.0.0.1', 9)\n"
        "attempt(lambda: proxied.set_tunnel('pubsub.googleapis.com'))\n"
    )
    for variables in ({}, proxy):
        lines = step(program, **variables).splitlines()
        assert len(lines) == 10, lines
        assert {each.partition(" ")[0] for each in lines} == {"MethodNotImplemented"}, lines
        assert "GET /storage/v1/b/b/o/x was not sent: localvertex does not answer it for storage.g" in lines[5]
        assert all("localvertex.toml" in each for each in lines)


def test_a_public_object_can_be_downloaded_and_nothing_else() -> None:
    program = WATCHED + (
        "import urllib.request\n"
        "attempt(lambda: urllib.request.urlopen('https://storage.googleapis.com/tensorflow/mnist.npz'))\n"
    )
    # The proxy on a closed port stands for the network.
    lines = step(program, https_proxy="http://127.0.0.1:9").splitlines()
    assert lines[0].startswith("socket.getaddrinfo 127.0.0.1")
    assert "not sent" not in "\n".join(lines)


def test_requests_go_to_the_endpoint_with_the_token_of_the_run(tmp_path: Path) -> None:
    program = (
        "import requests\n"
        "def get(url, **headers): print(requests.get(url, headers=headers).text)\n"
        "get('https://europe-west4-aiplatform.googleapis.com/v1/x?a=b', Authorization='Bearer theirs')\n"
        "get('https://aiplatform.googleapis.com/v1/x')\n"
        "get('https://storage.googleapis.com/storage/v1/b')\n"
        "get('{own}/session')\n"
        "get('{other}/y', Authorization='Bearer theirs')\n"
        "get('{other}/z')\n"
    )
    file, token = tmp_path / "endpoint.json", "t" * 40
    with http_server() as own, http_server() as other:
        step_endpoint.write(file, StepEndpoint(address=own, token=token))
        lines = step(
            program.replace("{own}", own).replace("{other}", other),
            **{VARIABLE: str(file), "LOCALVERTEX_GCS_ROOT": "/buckets", "https_proxy": "http://127.0.0.1:9"},
        ).splitlines()
    host, foreign = own.removeprefix("http://"), other.removeprefix("http://")
    assert lines == [
        f"/v1/x?a=b {host} Bearer {token}",
        f"/v1/x {host} Bearer {token}",
        f"/storage/v1/b {host} Bearer {token}",
        f"/session {host} Bearer {token}",
        f"/y {foreign} Bearer theirs",
        f"/z {foreign} None",
    ]


def test_gcsfs_reaches_the_buckets_too(tmp_path: Path) -> None:
    # Of aiohttp, which is not installed here, the one method that every request passes.
    (tmp_path / "aiohttp").mkdir()
    (tmp_path / "aiohttp" / "__init__.py").touch()
    session = "class ClientSession:\n    def _request(self, *words, **options): return words, options\n"
    (tmp_path / "aiohttp" / "client.py").write_text(session)
    program = WATCHED + (
        "from aiohttp.client import ClientSession\n"
        "def get(url, **options): print(ClientSession()._request('GET', url, **options))\n"
        "get('https://storage.googleapis.com/storage/v1/b/data?a=b', headers={'Authorization': 'theirs', 'x': 'y'})\n"
        "get('https://example.org/', headers={'Authorization': 'theirs'})\n"
        "attempt(lambda: get('https://pubsub.googleapis.com/v1/x'))\n"
    )
    step_endpoint.write(tmp_path / "endpoint.json", StepEndpoint(address="http://127.0.0.1:9", token="t"))
    variables = {VARIABLE: str(tmp_path / "endpoint.json"), "LOCALVERTEX_GCS_ROOT": "/buckets"}
    lines = step(program, PYTHONPATH=str(tmp_path), **variables).splitlines()
    sent = {"headers": {"Authorization": "Bearer t", "x": "y"}, "proxy": None}
    assert lines[0] == str((("GET", "http://127.0.0.1:9/storage/v1/b/data?a=b"), sent))
    assert lines[1] == str((("GET", "https://example.org/"), {"headers": {"Authorization": "theirs"}}))
    assert lines[2].startswith("MethodNotImplemented 501 GET /v1/x was not sent")


def test_without_an_endpoint_nothing_is_sent() -> None:
    program = WATCHED + (
        "import requests\nattempt(lambda: requests.get('https://us-central1-aiplatform.googleapis.com/v1/x'))\n"
    )
    (line,) = step(program).splitlines()
    refused = "501 GET /v1/x was not sent: localvertex does not answer it for us-central1-aiplatform.googleapis.com"
    assert line.startswith(f"MethodNotImplemented {refused}")


def test_a_refusal_needs_no_library_of_google() -> None:
    program = "import sys; sys.modules['google.api_core'] = None\n" + WATCHED + "import socket\n"
    (line,) = step(program + "attempt(lambda: socket.getaddrinfo('pubsub.googleapis.com', 443))").splitlines()
    assert line.startswith("NotEmulated a connection was not sent")


def test_it_imports_nothing_and_runs_the_start_up_file_of_the_user(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins\nbuiltins.users = __file__\n")
    program = (
        "import builtins, sys; before = sorted(sys.modules); "
        "import json; print(getattr(builtins, 'users', None)); print(json.dumps(before))"
    )
    plain = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True).stdout
    users, modules = step(program, PYTHONPATH=str(tmp_path)).splitlines()
    assert users == str(tmp_path / "sitecustomize.py")
    assert set(json.loads(modules)) - set(json.loads(plain.splitlines()[1])) <= {
        "__future__",
        "sitecustomize",
        "builtins",
    }


def test_the_user_s_credentials_mean_the_real_services() -> None:
    with closing(UserCredentials()) as credentials:
        assert FOLDER not in credentials.environment({"PYTHONPATH": "/mine"})["PYTHONPATH"]
    with closing(NoCredentials()) as credentials:
        assert credentials.environment({"PYTHONPATH": "/mine"})["PYTHONPATH"] == f"{FOLDER}{os.pathsep}/mine"
        assert credentials.environment({})["PYTHONPATH"] == FOLDER


def test_its_copy_of_the_project_number_is_the_same() -> None:
    assert sitecustomize.PROJECT_NUMBER == buckets.PROJECT_NUMBER


def test_a_generated_client_takes_the_channel_that_refuses_as_one() -> None:
    # Google's generated clients of other services, such as that of traces, are given a channel.
    code = """
import grpc, grpc.aio
for opened in (grpc.secure_channel, grpc.aio.secure_channel):
    channel = opened("cloudtrace.googleapis.com:443", grpc.ssl_channel_credentials())
    print(isinstance(channel, (grpc.Channel, grpc.aio.Channel)))
    attempt(lambda: channel.unary_unary("/google.devtools.cloudtrace.v2.TraceService/BatchWriteSpans")(b""))
"""
    env = {**os.environ, "PYTHONPATH": FOLDER, VARIABLE: "/nowhere"}
    done = subprocess.run([sys.executable, "-c", WATCHED + code], env=env, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert [lines[0], lines[2]] == ["True", "True"], done.stdout + done.stderr
    assert all("cloudtrace.googleapis.com" in line and "was not sent" in line for line in (lines[1], lines[3]))
