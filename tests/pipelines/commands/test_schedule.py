"""`python -m pipelines schedule` against a real `localvertex serve`, with the real client."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipelines.commands import schedule as schedule_command
from vertex_testing.server import Server, wait_until


@pytest.fixture
def server(server: Server) -> Iterator[Server]:
    """The shared server, without schedules."""
    with server.without_schedules():
        yield server


@pytest.fixture
def write(tmp_path: Path, divide_file: Path) -> Callable[..., None]:
    """Write schedules.yaml with one schedule for each dictionary of changes."""

    def make(*changes: dict[str, Any]) -> None:
        usual = {"cron": "0 3 1 1 *", "time_zone": "Europe/Berlin", "file": str(divide_file), "parameters": {"n": 6}}
        listed = [{"name": "nightly", **usual, **change} for change in changes]
        (tmp_path / "schedules.yaml").write_text(yaml.safe_dump({"schedules": listed}))

    return make


@pytest.fixture
def schedule(pipelines: Any, server: Server) -> Callable[..., str]:
    """Run a verb and return its output."""

    def run(*words: str) -> str:
        done = pipelines("schedule", *words, *server.endpoint)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
        return str(done.stdout)

    return run


NOTHING = "up to date: all schedules match the file\n"


def test_plan_apply_update_replace_prune(server: Server, write: Any, schedule: Any) -> None:
    write({})
    assert schedule("plan") == "create nightly in us-central1: new\n"
    assert server.schedules() == []
    assert schedule("apply") == "create nightly\n"
    (first,) = server.schedules()
    assert first["cron"] == "TZ=Europe/Berlin 0 3 1 1 *"
    assert schedule("plan") == schedule("apply") == NOTHING

    write({"cron": "30 4 1 1 *", "end": "2200-01-01T00:00:00Z", "max_concurrent_runs": 2, "allow_queueing": True})
    assert schedule("apply") == "update nightly\n"
    (second,) = server.schedules()
    assert second["name"] == first["name"]
    assert second["cron"] == "TZ=Europe/Berlin 30 4 1 1 *"
    assert (second["maxConcurrentRunCount"], second["allowQueueing"]) == ("2", True)
    assert second["endTime"].startswith("2200-01-01T00:00:00")
    assert schedule("plan") == NOTHING

    write({"parameters": {"n": 7}})
    assert "changed" in schedule("plan")
    assert schedule("apply") == "create nightly\ndelete nightly\n"
    (third,) = server.schedules()
    assert third["name"] != first["name"]
    assert third["createPipelineJobRequest"]["pipelineJob"]["runtimeConfig"]["parameterValues"]["n"] == 7
    assert schedule("plan") == NOTHING

    foreign = {key: third[key] for key in ("cron", "maxConcurrentRunCount", "createPipelineJobRequest")}
    foreign["displayName"] = "unmanaged"
    del foreign["createPipelineJobRequest"]["pipelineJob"]["labels"]
    server.call("POST", "schedules", foreign)
    write()
    assert schedule("apply") == NOTHING
    assert schedule("apply", "--prune") == "delete nightly\n"
    assert [s["displayName"] for s in server.schedules()] == ["unmanaged"]


def test_a_start_can_be_removed_and_an_end_may_have_passed(server: Server, write: Any, schedule: Any) -> None:
    write({"start": "2100-01-01T00:00:00Z"})
    schedule("apply")
    assert server.schedules()[0]["nextRunTime"].startswith("2100-")
    write({})
    assert schedule("apply") == "update nightly\n"
    assert not server.schedules()[0]["nextRunTime"].startswith("2100")
    assert schedule("plan") == NOTHING
    # The service refuses an end before the creation of the schedule.
    write({"end": "2020-01-01T00:00:00Z"})
    assert schedule("apply") == "delete nightly\n"
    assert server.schedules() == []
    assert schedule("plan") == NOTHING


def test_pause_resume_run_now_list_delete(server: Server, write: Any, schedule: Any) -> None:
    write({"enabled": False})
    assert schedule("apply") == "create nightly\npause nightly\n"
    assert schedule("plan") == NOTHING
    assert "nightly  PAUSED  TZ=Europe/Berlin 0 3 1 1 *" in schedule("list")
    assert schedule("resume", "nightly", "--catch-up") == "resume nightly\n"
    (found,) = server.schedules()
    assert (found["state"], found["catchUp"]) == ("ACTIVE", True)
    assert schedule("pause", "nightly") == "pause nightly\n"
    schedule("resume", "nightly")
    (found,) = server.schedules()
    assert (found["state"], found.get("catchUp", False)) == ("ACTIVE", False)
    job = schedule("run-now", "nightly").strip().rpartition("/")[2]
    ended = wait_until(lambda: (j := server.call("GET", f"pipelineJobs/{job}").json())["state"].endswith("ED") and j)
    assert ended["state"] == "PIPELINE_STATE_SUCCEEDED"
    assert schedule("delete", "nightly") == "delete nightly\n"
    assert server.schedules() == []


@pytest.fixture
def fast_server(tmp_path: Path) -> Iterator[Server]:
    """A server on which a minute of a schedule takes 12 seconds."""
    with Server(tmp_path / "runs", "--time-factor", "5") as server:
        yield server


def fast_clock(begin: float, reached: datetime) -> type[datetime]:
    """Return the clock of that server, for the client, from a time that it has reached at `begin` or later."""

    class FastClock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return reached + 5 * timedelta(seconds=time.monotonic() - begin)

    return FastClock


@pytest.mark.slow(first=True)
def test_a_replacement_misses_and_doubles_no_run(
    fast_server: Server, write: Any, pipelines: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def schedule(verb: str) -> str:
        done = pipelines("schedule", verb, *fast_server.endpoint)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
        return str(done.stdout)

    def instant(job: dict[str, Any]) -> datetime:
        # Ids are such as divide-20261122030000-123456.
        return datetime.strptime(job["name"].split("-")[-2], "%Y%m%d%H%M%S")

    # On a busy machine a run may last longer than a minute.
    minutely, begin = {"cron": "* * * * *", "max_concurrent_runs": 20}, time.monotonic()
    write(minutely)
    schedule("apply")
    (old,) = fast_server.schedules()
    monkeypatch.setattr(schedule_command, "datetime", fast_clock(begin, datetime.fromisoformat(old["createTime"])))
    write({**minutely, "parameters": {"n": 7}})
    schedule("apply")
    old, new = sorted(fast_server.schedules(), key=lambda s: s["createTime"])

    def runs() -> list[dict[str, Any]]:
        jobs = fast_server.call("GET", "pipelineJobs").json().get("pipelineJobs", [])
        return sorted(jobs, key=instant)

    assert old.get("endTime", new["startTime"]) == new["startTime"]
    found = wait_until(lambda: (j := runs()) and j[-1].get("scheduleName") == new["name"] and j, timeout_seconds=240)
    # Each minute from the first run of the old schedule to the first run of the new one has exactly one run.
    assert {job["scheduleName"] for job in found} == {old["name"], new["name"]}
    assert [b - a for a, b in pairwise(map(instant, found))] == [timedelta(minutes=1)] * (len(found) - 1)
    assert wait_until(lambda: schedule("apply") and schedule("plan") == NOTHING)
    assert [s["name"] for s in fast_server.schedules()] == [new["name"]]


class KillingProxy:
    """A proxy of the server that kills its client at call number `at`, before or after forwarding the call."""

    def __init__(self, server: Server, *, at: int, forwarded: bool) -> None:
        self.victim: subprocess.Popen[str] | None = None
        count = iter(range(1000))
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def forward(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                is_fatal = self.command != "GET" and next(count) == at
                if is_fatal and not forwarded:
                    return proxy.kill()
                headers = {"Content-Type": "application/json"}
                got = server.request(self.command, self.path, data=body, headers=headers)
                if is_fatal:
                    return proxy.kill()
                self.send_response(got.status_code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(got.content)))
                self.end_headers()
                self.wfile.write(got.content)
                return None

            do_GET = do_POST = do_PATCH = do_DELETE = forward

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def kill(self) -> None:
        assert self.victim is not None
        self.victim.send_signal(signal.SIGKILL)

    def run(self, folder: Path, repository: Path) -> int:
        url = f"http://127.0.0.1:{self.http.server_port}"
        words = [sys.executable, "-m", "pipelines", "schedule", "apply", "--endpoint", url]
        variables = os.environ | {"PYTHONPATH": str(repository)}
        self.victim = subprocess.Popen(words, cwd=folder, env=variables, text=True, stdout=subprocess.DEVNULL)
        code = self.victim.wait(300)
        self.http.shutdown()
        self.http.server_close()
        return code


@pytest.mark.slow
@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("forwarded", [False, True])
def test_the_next_apply_completes_a_killed_one(
    server: Server, write: Any, schedule: Any, tmp_path: Path, repository: Path, at: int, forwarded: bool
) -> None:
    write({})
    schedule("apply")
    # There are three calls: create, pause, and delete of the replaced schedule.
    write({"parameters": {"n": 7}, "enabled": False})
    assert KillingProxy(server, at=at, forwarded=forwarded).run(tmp_path, repository) == -signal.SIGKILL
    schedule("apply")
    (found,) = server.schedules()
    assert found["state"] == "PAUSED"
    assert found["createPipelineJobRequest"]["pipelineJob"]["runtimeConfig"]["parameterValues"]["n"] == 7
    assert schedule("plan") == NOTHING


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"crn": "x"}, "unknown key 'crn'; did you mean cron?"),
        ({"cron": "61 3 * * 1"}, "cron is '61 3 * * 1'"),
        ({"cron": "0 3 L * *"}, "cron is '0 3 L * *'; expected numbers, names of months and days"),
        ({"cron": "0 3 * * 1#1"}, "cron is '0 3 * * 1#1'; expected numbers, names of months and days"),
        ({"region": ""}, "no region given"),
        ({"cron": "0 3 30 2 *"}, "cron is '0 3 30 2 *'"),
        ({"time_zone": "Europe/Berlim"}, "time_zone is 'Europe/Berlim'; expected a name of the IANA database"),
        ({"parameters": {"n": "six"}}, "parameter 'n' is 'six'; expected NUMBER_INTEGER"),
        ({"max_concurrent_runs": True}, "max_concurrent_runs is True; expected int"),
        ({"end": "2026-01-01"}, "end is '2026-01-01'; expected a time with its offset"),
        (
            {"region": "us-centrl1"},
            "region is 'us-centrl1', which is not a region with training; did you mean us-central1?",
        ),
    ],
)
def test_wrong_input_is_one_line_with_its_path(pipelines: Any, write: Any, change: Any, message: str) -> None:
    write(change)
    # Nothing listens on that port: the error is found before any call.
    done = pipelines("schedule", "apply", "--endpoint", "http://127.0.0.1:9")
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: schedules.yaml, schedules[0] (nightly): {message}")


@pytest.mark.parametrize("verb", [("apply",), ("list",), ("pause", "nightly"), ("run-now", "nightly")])
@pytest.mark.parametrize(
    ("code", "status", "message"),
    [
        (403, "PERMISSION_DENIED", "permission denied (the reason); docs/cloud.md lists the roles required in"),
        (429, "RESOURCE_EXHAUSTED", "quota exceeded (the reason); request more in us-central1 under"),
    ],
)
def test_a_refusal_of_the_service_is_one_line_with_the_cause_first(
    pipelines: Any, service: Any, write: Any, verb: tuple[str, ...], code: int, status: str, message: str
) -> None:
    write({})
    url = service(lambda method, path: (code, {"error": {"code": code, "status": status, "message": "the reason"}}))
    done = pipelines("schedule", *verb, "--endpoint", url)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert line.startswith(f"error: {message}")


LOST = [(500, {"error": "boom"}), (200, {"status": "ok"})]
"""Answers to a create that do not prove whether it was carried out."""


@pytest.mark.parametrize("answer", LOST)
def test_a_lost_answer_to_apply_is_no_success(pipelines: Any, service: Any, write: Any, answer: Any) -> None:
    write({})
    url = service(lambda method, path: (200, {}) if method == "GET" else answer)
    done = pipelines("schedule", "apply", "--endpoint", url)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert line.endswith("; create nightly may be done: `schedule apply` looks first and continues")


@pytest.mark.parametrize("answer", LOST)
def test_a_lost_answer_to_run_now_names_the_job_that_may_be_running(
    pipelines: Any, service: Any, server: Server, write: Any, schedule: Any, answer: Any
) -> None:
    write({})
    schedule("apply")
    (existing,) = server.schedules()
    sent: list[str] = []

    def reply(method: str, path: str) -> tuple[int, dict[str, Any]]:
        if method == "GET":
            return 200, {"schedules": [existing]}
        sent.append(path.partition("pipelineJobId=")[2].partition("&")[0])
        return answer

    url = service(reply)
    done = pipelines("schedule", "run-now", "nightly", "--endpoint", url)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert line.endswith(f"; {sent[0]} may be running: look at {url}/ before you start it again")
    assert sent[0].startswith("divide-")


def test_a_refused_create_changes_nothing(
    pipelines: Any, service: Any, server: Server, write: Any, schedule: Any
) -> None:
    write({})
    schedule("apply")
    before = server.schedules()
    write({"parameters": {"n": 7}})

    def refuse(method: str, path: str) -> tuple[int, dict[str, Any]]:
        if method == "GET":
            return 200, server.get(path).json()
        return 429, {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "too many schedules"}}

    done = pipelines("schedule", "apply", "--endpoint", service(refuse))
    assert done.returncode == 1
    assert done.stderr.startswith("error: quota exceeded (too many schedules)")
    assert server.schedules() == before


def test_an_unreachable_service_and_missing_credentials_are_one_line(pipelines: Any, write: Any) -> None:
    write({})
    done = pipelines("schedule", "plan", "--endpoint", "http://127.0.0.1:9")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: http://127.0.0.1:9 is not available (it cannot be reached: ")
    write({"pipeline_root": "gs://my-bucket/root"})
    done = pipelines("schedule", "plan", "--project", "my-project")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: no credentials for Google Cloud: run `gcloud auth application-default login`")


def test_warnings_of_the_machine_check_are_printed(
    pipelines: Any, server: Server, write: Any, compiled_training: Path
) -> None:
    write(
        {
            "file": str(compiled_training),
            "parameters": {"machine_type": "n1-highmem-2", "accelerator_type": "NVIDIA_TESLA_T4"},
        }
    )
    done = pipelines("schedule", "plan", *server.endpoint)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("warning: nightly: n1-highmem-2 with a GPU may stop writing logs")


def test_a_schedule_that_promotes_everything_has_a_warning(
    pipelines: Any, server: Server, write: Any, compiled_training: Path
) -> None:
    write({"file": str(compiled_training), "parameters": {"force_promotion": True}})
    done = pipelines("schedule", "plan", *server.endpoint)
    assert done.stdout.startswith("warning: nightly: force_promotion promotes every model"), done.stderr


def test_a_repeated_key_is_refused(pipelines: Any, tmp_path: Path) -> None:
    (tmp_path / "schedules.yaml").write_text("schedules:\n- name: a\n  cron: 0 3 * * 1\n  cron: 0 4 * * 1\n")
    done = pipelines("schedule", "plan", "--endpoint", "http://127.0.0.1:9")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "'cron'" in line


def test_a_work_directory_of_another_server_is_one_line(pipelines: Any, server: Server, tmp_path: Path) -> None:
    done = pipelines("schedule", "list", "--endpoint", server.url)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert line.startswith(f"error: {server.url} does not accept the token of the work folder runs; add --work-dir")
    (tmp_path / "runs" / "api").mkdir(parents=True)
    token = tmp_path / "runs" / "api" / "token"
    token.write_text("t" * 43)
    token.chmod(0o644)
    done = pipelines("schedule", "list", "--endpoint", server.url)
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: the credentials were not accepted ({token} can be read by other users; restart")
    token.chmod(0o600)
    done = pipelines("schedule", "list", "--endpoint", server.url)
    assert "does not accept the token of the work folder runs" in done.stderr
