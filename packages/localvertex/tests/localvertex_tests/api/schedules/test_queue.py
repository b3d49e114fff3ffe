"""A queue of 300 runs that are long enough to wait: order, limit, memory, and what is cancelled in the queue."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest

from vertex_testing.server import PARENT, Server, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.soak]

NUM_RUNS, LIMIT = 300, 8

MOST_GROWTH_BYTES = 64 << 20
"""Of the server's memory, from the first runs to the end of the last; a run that waits needs none."""


def waiting_pipeline(gate: Path) -> dict[str, Any]:
    """Return a pipeline whose step waits until a file exists, and then a second."""
    command = ["sh", "-c", f"while [ ! -e '{gate}' ]; do sleep 0.2; done; sleep 1"]
    return {
        "pipelineInfo": {"name": "waits"},
        "schemaVersion": "2.1.0",
        "sdkVersion": "kfp-2.14.0",
        "root": {"dag": {"tasks": {"wait": {"componentRef": {"name": "comp"}, "taskInfo": {"name": "wait"}}}}},
        "components": {"comp": {"executorLabel": "exec"}},
        "deploymentSpec": {"executors": {"exec": {"container": {"image": "alpine", "command": command}}}},
    }


def read(server: Server, schedule: str) -> dict[str, Any]:
    """Return a schedule."""
    found: dict[str, Any] = server.call("GET", f"schedules/{schedule}").json()
    return found


def records(server: Server) -> list[dict[str, Any]]:
    """Return the records of all runs in the order of their instants, which the names of their folders contain."""
    return [json.loads(path.read_text()) for path in sorted(server.work_dir.glob("waits-*/run.json"))]


def states(server: Server) -> list[str]:
    """Return the states of the runs that have not ended."""
    return [each["state"] for each in records(server) if not each["end_time"]]


def instant_of(record: dict[str, Any]) -> datetime:
    """Return the instant for which a run was started."""
    return datetime.strptime(record["run_id"].split("-")[1], "%Y%m%d%H%M%S")


def test_300_runs_wait_in_their_order_and_within_their_limit(
    start_server: Callable[..., Server], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    # A minute of the schedule is a tenth of a second.
    server, gate = (
        start_server("--time-factor", "600", "--allow-host-commands", "--max-runs", str(LIMIT)),
        tmp_path / "gate",
    )
    job = {"displayName": "waits", "pipelineSpec": waiting_pipeline(gate)}
    limits = {"maxConcurrentRunCount": str(LIMIT), "maxRunCount": str(NUM_RUNS), "allowQueueing": True}
    request = {"parent": PARENT, "pipelineJob": job}
    body = {"displayName": "queue", "cron": "* * * * *", "createPipelineJobRequest": request, **limits}
    answer = server.call("POST", "schedules", body)
    assert answer.status_code == 200, answer.text
    number = answer.json()["name"].rpartition("/")[2]
    first = datetime.fromisoformat(read(server, number)["nextRunTime"])
    process = psutil.Process(server.process.pid)

    wait_until(lambda: len(states(server)) == LIMIT)
    before = process.memory_info().rss
    # All other instants pass: their runs wait.
    probe = body | {"displayName": "clock", "cron": "0 0 1 1 *"}

    def now() -> datetime:
        content = server.call("POST", "schedules", probe).json()
        server.call("DELETE", f"schedules/{content['name'].rpartition('/')[2]}").raise_for_status()
        return datetime.fromisoformat(content["createTime"])

    wait_until(lambda: now() > first + timedelta(minutes=NUM_RUNS), timeout_seconds=300)
    assert (len(records(server)), read(server, number)["startedRunCount"]) == (LIMIT, str(LIMIT))
    queued = process.memory_info().rss

    # The run that is cancelled makes room for the next one only.
    cancelled = records(server)[0]["run_id"]
    server.call("POST", f"pipelineJobs/{cancelled}:cancel", {}).raise_for_status()
    wait_until(lambda: len(records(server)) == LIMIT + 1 and len(states(server)) == LIMIT)
    # While the schedule is paused, no further run starts.
    server.call("POST", f"schedules/{number}:pause", {}).raise_for_status()
    other = records(server)[1]["run_id"]
    server.call("POST", f"pipelineJobs/{other}:cancel", {}).raise_for_status()
    wait_until(lambda: len(states(server)) == LIMIT - 1)
    assert len(records(server)) == LIMIT + 1
    server.call("POST", f"schedules/{number}:resume", {"catchUp": True}).raise_for_status()
    wait_until(lambda: len(states(server)) == LIMIT)

    gate.touch()
    wait_until(lambda: read(server, number)["state"] == "COMPLETED" and not states(server), timeout_seconds=1500)
    ended = records(server)
    assert [each["state"] for each in ended if each["run_id"] not in (cancelled, other)] == ["SUCCEEDED"] * (
        NUM_RUNS - 2
    )
    assert [each["state"] for each in ended if each["run_id"] in (cancelled, other)] == ["CANCELLED"] * 2
    # Each instant once, in their order.
    assert {b - a for a, b in pairwise(map(instant_of, ended))} == {timedelta(minutes=1)}
    created = [each["create_time"] for each in ended]
    assert created == sorted(created)
    active = [sum(each["start_time"] <= run["start_time"] < each["end_time"] for each in ended) for run in ended]
    assert max(active) == LIMIT
    after = process.memory_info().rss
    figures = {"with 8 runs": before, "with 292 waiting": queued, "after 300": after}
    for name, size in figures.items():
        record_property(name, f"{size / 2**20:.0f} MiB")
    print({name: f"{size / 2**20:.0f} MiB" for name, size in figures.items()})
    assert after - before < MOST_GROWTH_BYTES
    assert server.text.count("Traceback") == 0
