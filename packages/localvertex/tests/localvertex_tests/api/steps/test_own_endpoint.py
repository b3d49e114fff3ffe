"""The endpoint of a run: who may call what, what it costs a run that does not call, and what is left when it ends."""

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import requests
from kfp import dsl

from localvertex._base import extras
from localvertex._base.step_endpoint import VARIABLE, StepEndpoint
from localvertex.api.access.step_access import StepAccess
from localvertex.credentials.isolation import NoCredentials
from localvertex.store import registry
from vertex_testing.own_endpoint import reachable, steps_endpoint
from vertex_testing.runs import STEP, Compile, StartRun
from vertex_testing.server import PARENT, wait_until

HEAVY = ("starlette", "uvicorn", "google.cloud.aiplatform_v1", "google.auth", "localvertex.api.app")


@dsl.component(**STEP)
def add(number: int) -> int:
    return number + 1


@dsl.pipeline(name="adds")
def adds() -> None:
    add(number=1)


@dsl.component(**STEP)
def hold(folder: str) -> None:
    """Copy the file of the endpoint, call it, and wait to be stopped."""
    import os
    import shutil
    import time
    import urllib.error
    import urllib.request
    from pathlib import Path

    path = os.environ["LOCALVERTEX_ENDPOINT"]
    shutil.copy(path, Path(folder, "copy"))
    Path(folder, "path").write_text(path)
    import json

    try:
        urllib.request.urlopen(json.loads(Path(path).read_text())["address"])
    except urllib.error.HTTPError as error:
        print("answered with", error.code)
    Path(folder, "ready").touch()
    time.sleep(600)


@dsl.pipeline(name="holds")
def holds(folder: str) -> None:
    hold(folder=folder)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StepEndpoint]:
    """The endpoint of a work folder with a model."""
    work_dir = tmp_path_factory.mktemp("runs")
    registry.add(work_dir, {"display_name": "pets"})
    with reachable(work_dir) as variables:
        yield StepEndpoint(**json.loads(Path(variables[VARIABLE]).read_text()))


def call(endpoint: StepEndpoint, path: str = "models", method: str = "GET", **headers: str) -> requests.Response:
    url = f"{endpoint.address}/v1/{PARENT}/{path}"
    body: Any = {} if method in ("POST", "PATCH") else None
    given = {"Authorization": f"Bearer {endpoint.token}"} | headers
    return requests.request(method, url, headers=given, json=body, timeout=60)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_the_file_is_private_and_goes_with_the_run(tmp_path: Path) -> None:
    with reachable(tmp_path) as variables:
        path = Path(variables[VARIABLE])
        found = StepEndpoint(**json.loads(path.read_text()))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert listens(found.port)
    assert not path.parent.exists()
    assert not listens(found.port)


def test_it_answers_with_the_token_of_the_run_only(opened: StepEndpoint) -> None:
    assert [each["displayName"] for each in call(opened).json()["models"]] == ["pets"]
    for headers in (
        {"Authorization": ""},
        {"Authorization": "Bearer "},
        {"Authorization": f"Bearer {'x' * len(opened.token)}"},
        {"Authorization": f"Basic {opened.token}"},
        {"Host": "attacker.example"},
        {"Origin": "https://attacker.example"},
    ):
        answer = call(opened, **headers)
        assert answer.status_code == 403, headers
        assert opened.token not in answer.text
    assert call(opened, "models:upload", "POST", **{"Content-Type": "text/plain"}).status_code == 415


@pytest.mark.parametrize("path", ["pipelineJobs", "customJobs", "schedules", "models/../pipelineJobs", "modelsx"])
def test_a_step_can_start_nothing(opened: StepEndpoint, path: str) -> None:
    assert call(opened, path, "POST").status_code in (403, 404, 405), path
    # A step may read jobs, of which a run has custom jobs only.
    assert call(opened, path).status_code in ((200,) if path == "customJobs" else (403, 404, 405, 501)), path


def test_a_token_ends_with_its_run_and_is_not_that_of_another() -> None:
    access, used = StepAccess("http://127.0.0.1:1"), []
    first, second = access.issue(lambda: used.append(1)), access.issue(lambda: used.append(2))
    path = f"/v1/{PARENT}/models"
    assert access.allows(second.token.encode(), "GET", path)
    assert used == [2]
    access.revoke(second)
    assert not access.allows(second.token.encode(), "GET", path)
    assert access.allows(first.token.encode(), "POST", f"/v1/{PARENT}/endpoints/1:deployModel")
    for path in ("pipelineJobs", "pipelineJobs/j:cancel", "customJobs", "schedules", "customJobs/../models"):
        assert not access.allows(first.token.encode(), "POST", f"/v1/{PARENT}/{path}"), path
        assert not access.allows(first.token.encode(), "DELETE", f"/v1/{PARENT}/{path}"), path
    assert access.allows(first.token.encode(), "GET", f"/v1/{PARENT}/pipelineJobs/j")
    assert not access.allows(b"", "GET", path)


def test_a_confined_token_shows_no_jobs_experiments_or_buckets() -> None:
    access = StepAccess("http://127.0.0.1:1")
    full, confined = access.issue(list), access.issue(list, may_change=False)
    for path in (
        *(f"/v1/{PARENT}/{each}" for each in ("metadataStores/default/contexts", "tensorboards", "customJobs")),
        *("/storage/v1/b", "/upload/storage/v1/b/data/o", "/download/storage/v1/b/data/o/x"),
    ):
        assert access.allows(full.token.encode(), "GET", path), path
        assert not access.allows(confined.token.encode(), "GET", path), path
    for path in ("/storage/v1/browse", "/upload/x", "/", "/console/", "/local/events", f"/v1/{PARENT}/datasets"):
        assert not access.allows(full.token.encode(), "GET", path), path


def test_a_refused_call_is_named(opened: StepEndpoint) -> None:
    answer = call(opened, "customJobs", "POST")
    assert answer.status_code == 403
    assert answer.json()["error"]["message"].startswith("JobService.CreateCustomJob is not available to steps")


def test_a_command_in_the_sandbox_may_read_and_predict(tmp_path: Path) -> None:
    registry.add(tmp_path, {"display_name": "pets"})
    with closing(NoCredentials()) as credentials, steps_endpoint(tmp_path, credentials):
        env = credentials.environment({})
        confined = credentials.step_file.sandbox_variables(env)[VARIABLE]
        assert [str(each) for each in credentials.step_file.readable] == [confined] != [env[VARIABLE]]
        found = StepEndpoint(**json.loads(Path(confined).read_text()))
        assert call(found, "models/pets").json()["displayName"] == "pets"
        for method, path in (("DELETE", "models/pets"), ("POST", "models:upload"), ("PATCH", "models/pets")):
            assert call(found, path, method).status_code == 403, path
        # It passes the check, and there is no such endpoint.
        assert call(found, "endpoints/1:predict", "POST").status_code != 403
        assert call(found, "endpoints", "POST").status_code == 403


def test_without_the_extra_the_first_call_makes_the_run_warn_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "localvertex.api.steps.server", None)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with reachable(tmp_path) as variables:
        found = StepEndpoint(**json.loads(Path(variables[VARIABLE]).read_text()))
        for method in ("GET", "POST"):
            with pytest.raises(requests.ConnectionError):
                call(found, method=method)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith(f"; {extras.install('serve')}")


def test_a_user_s_own_variable_and_proxy_do_not_lead_elsewhere(tmp_path: Path) -> None:
    users = {VARIABLE: "/planted", "HTTP_PROXY": "http://proxy:1", "NO_PROXY": "intern"}
    with closing(NoCredentials()) as credentials:
        assert VARIABLE not in credentials.environment(users)
        with steps_endpoint(tmp_path, credentials):
            found = credentials.environment(users)
            assert Path(found[VARIABLE]).is_file()
            assert found["NO_PROXY"] == found["no_proxy"] == "intern,127.0.0.1,localhost"
            assert "no_proxy" not in credentials.environment({})
        assert VARIABLE not in credentials.environment(users)


def test_no_masker_runs_before_the_token_is_used(tmp_path: Path) -> None:
    with closing(NoCredentials()) as credentials, steps_endpoint(tmp_path, credentials):
        assert credentials.secrets.live() == []
        token = json.loads(credentials.step_file.readable[0].read_text())["token"]
        assert token in credentials.secrets.spellings()
        credentials.secrets.use_tokens()
        assert token in credentials.secrets.live()
        credentials.secrets.learn({"API_KEY": "another-secret"})
    with closing(NoCredentials()) as credentials, steps_endpoint(tmp_path, credentials):
        credentials.secrets.learn({"API_KEY": "another-secret"})
        assert len(credentials.secrets.live()) == 3


def test_a_run_without_a_call_imports_nothing_for_it(compiled: Compile, tmp_path: Path) -> None:
    program = (
        "import sys; from localvertex.__main__ import main; "
        "code = main(['run', sys.argv[1], '--work-dir', sys.argv[2]]); "
        f"print('imported:', [each for each in {HEAVY!r} if each in sys.modules]); sys.exit(code)"
    )
    words = [sys.executable, "-c", program, compiled(adds), tmp_path / "runs"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "imported: []" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("number", [pytest.param(signal.SIGTERM, marks=pytest.mark.soak), signal.SIGKILL])
def test_nothing_is_left_of_a_run_that_was_stopped(start_run: StartRun, tmp_path: Path, number: signal.Signals) -> None:
    run = start_run(holds, "--parameter", f"folder={tmp_path}", "--grace", "1")
    wait_until(lambda: (tmp_path / "ready").exists() or run.poll() is not None)
    assert run.poll() is None, run.communicate()[0]
    found: Any = json.loads((tmp_path / "copy").read_text())
    port = StepEndpoint(**found).port
    assert listens(port)
    os.kill(run.pid, number)
    run.communicate()
    # Its processes end, too, before their supervisors let go of the run.
    wait_until(lambda: not listens(port))
    path = Path((tmp_path / "path").read_text())
    if number == signal.SIGTERM:
        assert not path.parent.exists()
    else:
        assert found["token"] in path.read_text(), "a dead token in a file that only its owner can read"
        shutil.rmtree(path.parent)
    text = "".join(each.read_text(errors="replace") for each in (tmp_path / "runs").rglob("*") if each.is_file())
    assert found["token"] not in text
