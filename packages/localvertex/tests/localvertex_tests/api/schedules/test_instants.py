"""Every instant of a schedule is handled once: on a full disk, beside damaged records, after SIGKILL."""

import json
import signal
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from localvertex.api.rest.call import Call, Location
from localvertex.commands.service import Service
from vertex_testing.server import PARENT, Server, wait_until

FAST = ("--time-factor", "120")
"""A minute of the schedules is half a second."""


@pytest.fixture
def each_minute(light_pipeline: dict[str, Any]) -> dict[str, Any]:
    """Return a schedule whose runs end at once."""
    request = {"parent": PARENT, "pipelineJob": {"displayName": "light", "pipelineSpec": light_pipeline}}
    limits = {"maxConcurrentRunCount": "1000", "maxRunCount": "100000"}
    return {"displayName": "each minute", "cron": "* * * * *", "createPipelineJobRequest": request, **limits}


def create(server: Server, schedule: dict[str, Any]) -> str:
    """Create a schedule and return its number."""
    answer = server.call("POST", "schedules", schedule)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["name"].rpartition("/")[2])


def read(server: Server, number: str) -> dict[str, Any]:
    content: dict[str, Any] = server.call("GET", f"schedules/{number}").json()
    return content


def count(server: Server, number: str) -> int:
    return int(read(server, number)["startedRunCount"])


def response(server: Server, number: str) -> str:
    return str(read(server, number).get("lastScheduledRunResponse", {}).get("runResponse", ""))


def file_of(server: Server, number: str) -> Path:
    return server.work_dir / "api" / "schedules" / f"{number}.json"


def instants(server: Server) -> list[datetime]:
    """Return the instants of all runs, from the names of their folders."""
    stamps = [path.parent.name.split("-")[1] for path in server.work_dir.glob("light-*/run.json")]
    return sorted(datetime.strptime(each, "%Y%m%d%H%M%S").replace(tzinfo=UTC) for each in stamps)


@pytest.mark.slow
def test_schedules_go_on_after_a_full_disk(start_server: Callable[..., Server], each_minute: dict[str, Any]) -> None:
    server = start_server(*FAST)
    number = create(server, each_minute)
    wait_until(lambda: count(server, number) >= 2)
    with server.full_disk():
        wait_until(lambda: "RESOURCE_EXHAUSTED" in response(server, number))
        assert read(server, number)["state"] == "ACTIVE"
        before = count(server, number)
    wait_until(lambda: count(server, number) >= before + 3)
    assert response(server, number).startswith("OK")
    assert server.call("POST", f"schedules/{number}:pause", {}).status_code == 200
    # Neither lost nor doubled, and the count is that of the runs.
    found = instants(server)
    assert {b - a for a, b in pairwise(found)} == {timedelta(minutes=1)}
    assert count(server, number) == len(found)


DAMAGE: dict[str, Callable[[dict[str, Any]], Any]] = {
    "not an object": lambda _: [],
    "no state": lambda content: {name: value for name, value in content.items() if name != "state"},
    "another state": lambda content: content | {"state": "RUNNING"},
    "a bad cron": lambda content: content | {"cron": "99 * * * *"},
    "a cron of another type": lambda content: content | {"cron": 3},
    "no next run": lambda content: {name: value for name, value in content.items() if name != "nextRunTime"},
    "a time without a zone": lambda content: content | {"nextRunTime": "2026-01-01T00:00:00"},
    "a count of letters": lambda content: content | {"startedRunCount": "many"},
    "no pipeline": lambda content: content | {"createPipelineJobRequest": {}},
    "another name": lambda content: content | {"name": f"{PARENT}/schedules/1"},
    "a response of another type": lambda content: content | {"lastScheduledRunResponse": 3},
}


@pytest.mark.slow
def test_damaged_schedules_are_shown_and_hurt_no_other(
    start_server: Callable[..., Server], each_minute: dict[str, Any]
) -> None:
    server = start_server(*FAST)
    number = create(server, each_minute)
    content = json.loads(file_of(server, number).read_text())
    for index, damage in enumerate(DAMAGE.values(), 100):
        own = content | {"name": f"{PARENT}/schedules/{index}"}
        write(file_of(server, str(index)), json.dumps(damage(own)).encode())
    damaged = [str(100 + index) for index in range(len(DAMAGE) + 2)]
    write(file_of(server, damaged[-2]), b'{"name": "')
    write(file_of(server, damaged[-1]), b"\xff\x00")
    check_damaged(server, number, damaged)
    # The running server has survived them, and a new one starts with them.
    server.end(signal.SIGKILL)
    server = start_server(*FAST)
    check_damaged(server, number, damaged)
    for name in damaged:
        assert server.call("DELETE", f"schedules/{name}").status_code == 200
    assert [each["name"].rpartition("/")[2] for each in server.schedules()] == [number]


def write(path: Path, content: bytes) -> None:
    """Write a record atomically: the server may read it at any time and would find an empty one."""
    part = path.with_suffix(".part")
    part.write_bytes(content)
    part.replace(path)


def check_damaged(server: Server, number: str, damaged: list[str]) -> None:
    """Check that a schedule goes on, and that the others are shown as damaged and were reported once."""
    before = count(server, number)
    wait_until(lambda: count(server, number) > before)
    states = {each["name"].rpartition("/")[2]: each["state"] for each in server.schedules()}
    assert states == dict.fromkeys(damaged, "STATE_UNSPECIFIED") | {number: "ACTIVE"}
    assert server.call("GET", "schedules").text.count("its record is damaged") == len(damaged)
    for name in damaged:
        assert server.text.count(f"schedules/{name}.json is damaged") == 1
        assert "is damaged" in response(server, name)
        refused = server.call("POST", f"schedules/{name}:pause", {})
        assert (refused.status_code, refused.json()["error"]["status"]) == (400, "FAILED_PRECONDITION")


@pytest.mark.slow
@pytest.mark.parametrize("is_prepared", [True, False], ids=["its run exists", "its run was begun"])
def test_an_instant_that_was_not_noted_counts_once(
    start_server: Callable[..., Server], each_minute: dict[str, Any], is_prepared: bool
) -> None:
    """Put the state of a server that was killed after it had started a run, or while it did, on the disk."""
    server = start_server(*FAST)
    number = create(server, each_minute | {"maxRunCount": "4"})
    wait_until(lambda: count(server, number) >= 2)
    server.end(signal.SIGKILL)
    path = file_of(server, number)
    noted = json.loads(path.read_text())
    last = instants(server)[-1]
    unnoted = {"startedRunCount": str(len(instants(server)) - 1), "nextRunTime": last.isoformat(), "state": "ACTIVE"}
    path.write_text(json.dumps(noted | unnoted))
    if not is_prepared:
        (server.work_dir / f"light-{last:%Y%m%d%H%M%S}-{number[-6:]}" / "run.json").unlink()
        (server.work_dir / f"light-{last:%Y%m%d%H%M%S}-{number[-6:]}").rename(server.work_dir / "elsewhere")
    # Real time: when the clock is slower than before, the instant is in the future; when it is not, it was missed.
    again = start_server(*FAST)
    wait_until(lambda: read(again, number)["state"] == "COMPLETED")
    assert len(instants(again)) == len(set(instants(again))) == count(again, number) == 4
    assert last in instants(again)


@pytest.mark.slow
def test_refused_runs_do_not_count(start_server: Callable[..., Server], each_minute: dict[str, Any]) -> None:
    server = start_server()
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    number = create(server, each_minute | {"maxRunCount": "2", "startTime": later})
    due = datetime.fromisoformat(read(server, number)["nextRunTime"])
    server.end(signal.SIGKILL)
    taken = [due + timedelta(minutes=minutes) for minutes in range(3)]
    for each in taken:
        (server.work_dir / f"light-{each:%Y%m%d%H%M%S}-{number[-6:]}").mkdir()
    # An hour is two seconds.
    server = start_server("--time-factor", "1800")
    wait_until(lambda: read(server, number)["state"] == "COMPLETED")
    assert count(server, number) == len(instants(server)) == 2
    assert server.text.count("refused: ALREADY_EXISTS") == len(taken)


@pytest.fixture
def service(tmp_path: Path) -> Service:
    """Return a service whose schedules do not fire by themselves."""
    return Service(tmp_path / "runs", time_factor=1, log=print)


def call(number: str = "", body: dict[str, Any] | None = None, **query: str) -> Call:
    location = Location(project="local-project", region="us-central1")
    return Call(location=location, resource_id=number, body=body or {}, query=query)


def test_a_schedule_whose_pipeline_cannot_run_is_refused(service: Service, each_minute: dict[str, Any]) -> None:
    wrong = json.loads(json.dumps(each_minute))
    wrong["createPipelineJobRequest"]["pipelineJob"]["runtimeConfig"] = {"parameterValues": {"no_such": 3}}
    with pytest.raises(Exception, match="no_such"):
        service.schedules.create(call(body=wrong))
    number = service.schedules.create(call(body=each_minute))["name"].rpartition("/")[2]
    with pytest.raises(Exception, match="no_such"):
        service.schedules.patch(call(number, wrong, updateMask="create_pipeline_job_request"))
    stored = service.schedules.get(call(number))["createPipelineJobRequest"]
    assert "runtimeConfig" not in stored["pipelineJob"]
    assert not list(service.pipeline_jobs.work_dir.glob("light-*"))


def test_an_update_drops_the_runs_that_wait(service: Service, each_minute: dict[str, Any]) -> None:
    number = service.schedules.create(call(body=each_minute | {"allowQueueing": True}))["name"].rpartition("/")[2]
    path = service.schedules._store.path("schedules", number)
    waiting = {"nextRunTime": "2026-01-01T00:00:00Z"}
    path.write_text(json.dumps(json.loads(path.read_text()) | waiting))
    changed = service.schedules.patch(call(number, {"displayName": "renamed"}, updateMask="display_name"))
    assert changed["displayName"] == "renamed"
    assert datetime.fromisoformat(changed["nextRunTime"]) > datetime.now(UTC) - timedelta(minutes=1)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"cron": "9" * 5000 + " * * * *"}, "at most 1000 characters"),
        ({"cron": "9" * 900 + " * * * *"}, "Bad minute"),
        ({"startTime": "9999-12-31T23:59:59Z"}, "does not fire after 9999"),
        ({"startTime": "0001-01-01T00:00:00Z", "endTime": "0001-01-02T00:00:00Z"}, None),
        ({"endTime": "9999-12-31T23:59:59.999999999Z"}, None),
    ],
)
def test_times_and_numbers_at_the_limits(
    service: Service, each_minute: dict[str, Any], fields: dict[str, Any], reason: str | None
) -> None:
    if reason is not None:
        with pytest.raises(Exception, match=reason):
            service.schedules.create(call(body=each_minute | fields))
        return
    before = datetime.now(UTC)
    created = service.schedules.create(call(body=each_minute | fields))
    assert datetime.fromisoformat(created["nextRunTime"]) > before
