"""Every call and page needs the token, which is nowhere but in its file; what a browser and the SDK do with it."""

import contextlib
import json
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import google.auth.credentials
import psutil
import pytest
import requests
from google.api_core import exceptions
from localvertex_tests.api.access.test_token import NOBODY, as_root
from starlette.routing import Route

from localvertex import client
from localvertex._base.userinput.errors import UserError
from localvertex.api.access.access import REFUSAL, Access
from localvertex.api.app import application
from localvertex.commands.service import Service
from vertex_testing.server import PARENT, Server, wait_until

pytestmark = pytest.mark.slow

WRONG: list[dict[str, str]] = [
    {},
    {"Authorization": ""},
    {"Authorization": "Bearer wrong"},
    {"Authorization": "Basic bG9jYWw6dG9rZW4="},
    {"Cookie": "localvertex-0=x"},
]


PUBLIC = [(method, path) for method in ("GET", "HEAD") for path in ("/", "/console/x")]
"""The files of the console; they hold no data."""


def every_path(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Yield method and path of every call and page, and of some that the server does not have."""
    for route in application(Service(tmp_path / "unused", time_factor=1, log=print), Access("")).routes:
        assert isinstance(route, Route)
        path = re.sub(r"\{(\w+)[^}]*\}", lambda match: {"api": "v1", "version": "1"}.get(match[1], "x"), route.path)
        yield from ((method, path) for method in route.methods or () if (method, path) not in PUBLIC)
    yield from [("GET", "/v1/nothing"), ("POST", f"/v1/{PARENT}/endpoints"), ("OPTIONS", "/"), ("POST", "/")]
    yield from [("PUT", "/local/session"), ("DELETE", "/console/main.js"), ("GET", "/local/x"), ("GET", "/console")]


@pytest.mark.parametrize("headers", WRONG, ids=str)
def test_without_the_token_nothing_is_answered(server: Server, headers: dict[str, str], tmp_path: Path) -> None:
    for method, path in every_path(tmp_path):
        answer = requests.request(method, server.url + path, json={}, headers=headers, timeout=60)
        assert answer.status_code == 403, (method, path)
        assert "set-cookie" not in answer.headers
        if method == "HEAD":
            continue
        assert answer.json() == {"error": {"code": 403, "message": REFUSAL, "status": "PERMISSION_DENIED"}}
    assert "localvertex.client.init" in REFUSAL


def test_a_program_without_the_token_sees_the_sentence_whatever_it_sends(server: Server, sdk: Any) -> None:
    platform = sdk(server)
    anonymous = google.auth.credentials.AnonymousCredentials()
    try:
        platform.init(credentials=anonymous)
        with pytest.raises(exceptions.Forbidden, match=r"localvertex\.client\.init"):
            platform.PipelineJob.list()
    finally:
        sdk(server)
    body = json.dumps({"displayName": "x" * (12 << 20)})
    headers = {"Content-Type": "application/json"}
    for _ in range(3):
        answer = requests.post(f"{server.url}/v1/{PARENT}/pipelineJobs", body, headers=headers, timeout=60)
        assert (answer.status_code, answer.json()["error"]["message"]) == (403, REFUSAL)


def test_the_token_is_in_no_log_record_or_argument(
    start_server: Callable[..., Server], new_job: Any, tmp_path: Path
) -> None:
    server = start_server(has_own_interpreter=True)
    token = server.headers["Authorization"].removeprefix("Bearer ")
    job = new_job(server, job_id="shown", parameter_values={"seconds": 300})
    job.submit()
    server.request("POST", "/local/session", json={})
    server.request("GET", f"/v1/{token}")
    own = psutil.Process(server.process.pid)
    wait_until(lambda: len(own.children(recursive=True)) > 1)
    for process in (own, *own.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):  # it may end at any time
            assert token not in " ".join(process.cmdline())
            assert token not in str(process.environ())
    job.cancel()
    wait_until(lambda: job.has_failed or job.done())
    server.end()
    files = [each for each in tmp_path.rglob("*") if each.is_file() and token.encode() in each.read_bytes()]
    assert files == [server.work_dir / "api" / "token"]
    assert stat.S_IMODE(files[0].stat().st_mode) == 0o600
    assert stat.S_IMODE(server.work_dir.stat().st_mode) == 0o700


def test_a_restart_keeps_the_token_and_a_running_program_follows_a_new_one(
    start_server: Callable[..., Server], sdk: Any
) -> None:
    server = start_server()
    platform, headers = sdk(server), server.headers
    model = platform.Model.upload(display_name="kept", serving_container_image_uri="serving:1")
    port = server.url.rpartition(":")[2]
    server.end()
    # The later option counts.
    again = start_server("--port", port)
    assert again.headers == headers
    assert [each.name for each in platform.Model.list()] == [model.name]
    again.end()
    (server.work_dir / "api" / "token").unlink()
    renewed = start_server("--port", port)
    assert renewed.headers != headers
    assert [each.name for each in platform.Model.list()] == [model.name]
    assert requests.get(f"{renewed.url}/v1/{PARENT}/models", headers=headers, timeout=60).status_code == 403


def test_what_is_open_to_others_is_said_once(start_server: Callable[..., Server], tmp_path: Path) -> None:
    (tmp_path / "runs" / "api").mkdir(parents=True)
    (tmp_path / "runs").chmod(0o755)
    (tmp_path / "runs" / "api" / "token").write_text("t" * 43)
    (tmp_path / "runs" / "api" / "token").chmod(0o644)
    server = start_server()
    assert server.text.count("other users of this machine can open") == 1
    assert server.text.count("can be read by other users; it is replaced by a new token") == 1
    assert "t" * 43 not in server.headers["Authorization"]
    assert stat.S_IMODE((tmp_path / "runs").stat().st_mode) == 0o755


@as_root
@pytest.mark.parametrize("name", [".", "api"])
def test_a_work_directory_of_another_user_is_named(
    start_server: Callable[..., Server], tmp_path: Path, name: str
) -> None:
    (tmp_path / "runs" / "api").mkdir(parents=True)
    os.chown(tmp_path / "runs" / name, NOBODY, -1)
    expected = f"warning: {tmp_path / 'runs' / name} belongs to another user, who can run code as you"
    assert start_server().text.count(expected) == 1


def test_a_client_needs_a_work_directory_that_a_server_has_used(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no server: start `python -m localvertex serve --work-dir"):
        client.init(tmp_path)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_command_of_the_page(server: Server, package: Path) -> None:
    (command,) = re.findall(r"^```sh\n(.*?)^```$", (package / "docs" / "access.md").read_text(), re.M | re.S)
    for text, code in ((command, 0), (command.replace("cat runs/api/token", "echo wrong"), 22)):
        # The port of the page may be in use where the test runs.
        words = ["sh", "-c", text.replace("http://127.0.0.1:8700", server.url).replace("curl ", "curl -sf ", 1)]
        done = subprocess.run(words, cwd=server.work_dir.parent, capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        assert done.stdout.startswith("{") is (code == 0)
