"""A job while it runs, from its entry in the record and from event logs that are written out here."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from localvertex.show.view.live import LiveJob

PRIMARY, WORKER = "workerpool0-0", "workerpool1-0"
START = 1_700_000_000.0


def replica(name: str, log: Path, *spans: tuple[float, float | None, int | None], **fields: Any) -> dict[str, Any]:
    """Return the entry of a replica; times count from START."""
    ended = [code for _, _, code in spans if code is not None]
    return {
        "name": name,
        "is_running": spans[-1][1] is None,
        "num_starts": len(spans),
        "exit_code": ended[-1] if ended else None,
        "job_id": "a",
        "spans": [
            {"start": START + start, "end": end and START + end, "exit_code": code} for start, end, code in spans
        ],
        "event_log": {"path": str(log), "offset": 0},
        **fields,
    }


def status(*replicas: dict[str, Any], **fields: Any) -> dict[str, Any]:
    found = {"state": "JOB_STATE_RUNNING", "num_restarts": 0, "num_preemptions": 0, "events": [], "goodput": {}}
    return found | {"replicas": list(replicas)} | fields


def event(at: float, text: str, *, kind: str = "note", action: str = "", of: str = "") -> dict[str, Any]:
    return {"time": START + at, "kind": kind, "text": text, "replica": of, "action": action, "phase": ""}


def fault(action: str, of: str = PRIMARY) -> dict[str, Any]:
    return event(3.0, "any text", kind="fault", action=action, of=of)


def events(log: Path, *found: tuple[str, float, dict[str, Any]]) -> None:
    with log.open("a") as file:
        for name, at, fields in found:
            file.write(json.dumps({"event": name, "time": START + at, **fields}) + "\n")


def steps(at: float, first: int, last: int, seconds: float) -> tuple[str, float, dict[str, Any]]:
    fields = {"first_step": first, "last_step": last, "seconds": seconds, "num_steps": 40, "loss": 1.0}
    return "steps", at, fields


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / f"{PRIMARY}.jsonl"


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let the present be this many seconds after START."""
    return lambda seconds: monkeypatch.setattr(time, "time", lambda: START + seconds)


def job_of(messages: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    (found,) = [content for name, content in messages if name == "job"]
    return found


def test_goodput_and_timeline_so_far(log: Path, at: Any) -> None:
    events(log, ("start", 2.0, {}), steps(6.0, 1, 20, 4.0))
    live = LiveJob("train")
    at(8.0)
    messages = live.poll(status(replica(PRIMARY, log, (0.0, None, None))), is_running=True)
    found = job_of(messages)
    assert found["task"] == "train"
    assert found["timeline"] == {PRIMARY: [["starting", 0.0, 2.0], ["productive", 2.0, 6.0], ["waiting", 6.0, 8.0]]}
    assert (found["goodput"]["fraction"], found["goodput"]["num_steps"]) == (0.5, 20)
    assert found["status"]["start"] == START
    (shown,) = found["status"]["replicas"]
    assert (shown["condition"], shown["step"], shown["loss"]) == ("running", 20, 1.0)
    assert [content for name, content in messages if name == "steps"] == [
        {
            "task": "train",
            "replica": PRIMARY,
            "names": ["loss", "seconds"],
            "points": [[20, START + 6.0, 1.0, 4.0]],
            "evaluated": [],
            "resumes": [],
            "is_first": True,
        }
    ]
    assert live.poll(status(replica(PRIMARY, log, (0.0, None, None))), is_running=True) == [], "nothing has changed"


def test_a_restart_moves_steps_to_lost_while_the_job_runs(log: Path, at: Any) -> None:
    events(log, ("start", 2.0, {}), steps(6.0, 1, 20, 4.0))
    incidents = [
        event(7, "killed", kind="fault", action="SIGKILL", of=PRIMARY),
        event(7, "137", kind="exit", of=PRIMARY),
    ]
    live = LiveJob()
    at(8.0)
    live.poll(status(replica(PRIMARY, log, (0.0, None, None))), is_running=True)
    events(log, ("start", 9.0, {}), ("restore", 9.0, {"step": 10, "seconds": 0.0}), steps(11.0, 11, 20, 2.0))
    at(12.0)
    entry = replica(PRIMARY, log, (0.0, 7.0, 137), (8.0, None, None))
    messages = live.poll(status(entry, num_restarts=1, events=incidents), is_running=True)
    found = job_of(messages)
    assert (found["goodput"]["num_steps"], found["goodput"]["num_lost_steps"]) == (20, 10)
    assert found["events"] == [each | {"time": 7.0} for each in incidents]
    assert found["status"]["replicas"][0]["exit_codes"] == [137]
    assert found["status"]["replicas"][0]["condition"] == "running"
    ((_, new),) = [each for each in messages if each[0] == "steps"]
    assert (new["is_first"], new["resumes"]) == (False, [(START + 9.0, 10)])


def test_a_new_attempt_begins_anew(log: Path, at: Any) -> None:
    events(log, steps(6.0, 1, 20, 4.0))
    live = LiveJob()
    at(8.0)
    live.poll(status(replica(PRIMARY, log, (0.0, None, None))), is_running=True)
    offset = log.stat().st_size
    events(log, steps(16.0, 1, 5, 4.0))
    entry = replica(PRIMARY, log, (10.0, None, None), event_log={"path": str(log), "offset": offset})
    at(20.0)
    messages = live.poll(status(entry), is_running=True)
    assert job_of(messages)["goodput"]["num_steps"] == 5
    assert [(content["is_first"], len(content["points"])) for name, content in messages if name == "steps"] == [
        (True, 1)
    ]


@pytest.mark.parametrize(
    ("incident", "is_running", "code", "condition"),
    [
        (fault("SIGSTOP"), True, None, "frozen"),
        (fault("SIGSTOP", "all"), True, None, "frozen"),
        (fault("SIGSTOP", WORKER), True, None, "running"),
        (fault("SIGSTOP") | {"phase": "missed"}, True, None, "running"),
        (fault("preempt"), True, None, "leaving"),
        (fault("maintenance notice"), True, None, "leaving"),
        (event(3.0, f"fault: SIGSTOP {PRIMARY} at 3s"), True, None, "running"),
        (event(3.0, "x"), False, 0, "done"),
        (event(3.0, "x"), False, 137, "waiting"),
    ],
)
def test_the_condition_of_a_replica(
    log: Path, at: Any, incident: dict[str, Any], is_running: bool, code: int | None, condition: str
) -> None:
    at(8.0)
    span = (0.0, None if is_running else 6.0, code)
    found = job_of(LiveJob().poll(status(replica(PRIMARY, log, span), events=[incident]), is_running=True))
    assert found["status"]["replicas"][0]["condition"] == condition


def test_a_job_whose_localvertex_was_killed_is_not_shown_as_running(log: Path, at: Any) -> None:
    events(log, steps(6.0, 1, 20, 4.0))
    at(5000.0)
    found = job_of(LiveJob().poll(status(replica(PRIMARY, log, (0.0, None, None))), is_running=False))
    assert found["status"]["state"] == "JOB_STATE_FAILED"
    assert found["status"]["replicas"][0]["condition"] == "stopped"
    assert found["goodput"]["total_seconds"] == 6.0, "its time ends with the last that is known of it"


def test_a_job_that_has_ended_shows_the_goodput_of_its_record(log: Path, at: Any) -> None:
    at(5000.0)
    goodput = {"fraction": 0.4, "timeline": {PRIMARY: [["running", 0, 9]]}}
    entry = status(replica(PRIMARY, log, (0.0, 9.0, 0)), state="JOB_STATE_SUCCEEDED", goodput=goodput)
    found = job_of(LiveJob().poll(entry, is_running=False))
    assert found["goodput"] == {"fraction": 0.4}
    assert found["timeline"] == {PRIMARY: [["running", 0, 9]]}
    assert found["status"]["state"] == "JOB_STATE_SUCCEEDED"
    assert entry["goodput"] == goodput, "the record is not changed"


def test_trials_that_log_no_steps_have_timelines_but_no_goodput(log: Path, at: Any) -> None:
    at(8.0)
    trials = [replica(f"trials/{n}/{PRIMARY}", log, (float(n), None, None), event_log=None) for n in (2, 1)]
    found = job_of(LiveJob().poll(status(*trials), is_running=True))
    goodput = found["goodput"]
    assert (goodput["num_trials"], goodput["fraction"], goodput["total_seconds"]) == (2, None, 13.0)
    assert found["timeline"][f"trials/2/{PRIMARY}"][0][:2] == ["running", 1.0]


def test_without_a_job_there_is_nothing() -> None:
    assert LiveJob().poll(None, is_running=True) == []
    assert LiveJob().poll({}, is_running=False) == []


def test_a_clock_that_is_set_back_by_an_hour_stops_no_messages(log: Path, at: Any) -> None:
    events(log, ("start", 1.0, {}), steps(3.0, 1, 10, 1.0))
    entry, live = status(replica(PRIMARY, log, (0.0, None, None)), events=[event(2.0, "a fault")]), LiveJob()
    at(8.0)
    assert job_of(live.poll(entry, is_running=True))["goodput"]["fraction"] > 0
    assert live.poll(entry, is_running=True) == []
    at(-3600.0)
    found = job_of(live.poll(entry, is_running=True))
    # What cannot be measured is not shown as zero.
    assert (found["goodput"]["num_steps"], found["goodput"]["fraction"]) == (10, None)
    at(-3594.0)
    assert "job" in dict(live.poll(entry, is_running=True))
    ended = status(replica(PRIMARY, log, (0.0, -3590.0, 0)), events=[event(-3590.0, "exit")])
    found = job_of(LiveJob().poll(ended, is_running=False))
    assert all(each["time"] >= 0 for each in found["events"])


def test_a_job_that_makes_no_progress_says_why_while_it_is_running(log: Path, at: Any) -> None:
    events(log, ("start", 2.0, {}))
    live, frozen = LiveJob("train"), "no step for 2 min: workerpool0-0 is frozen"
    entry = replica(PRIMARY, log, (0.0, None, None))
    at(8.0)
    assert job_of(live.poll(status(entry), is_running=True))["status"]["stalled"] == ""
    # It is shown at once, and goes away at once.
    assert job_of(live.poll(status(entry, stalled=frozen), is_running=True))["status"]["stalled"] == frozen
    assert job_of(live.poll(status(entry, stalled=""), is_running=True))["status"]["stalled"] == ""
    assert job_of(live.poll(status(entry, stalled=frozen), is_running=False))["status"]["stalled"] == ""
    assert live.poll(status(entry, stalled=7), is_running=True) == [], "damaged"
