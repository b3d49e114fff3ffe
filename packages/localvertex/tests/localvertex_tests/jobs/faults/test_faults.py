"""Faults: how they are written, when they are due, and jobs that survive them."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from localvertex._base.userinput.errors import UserError
from localvertex.errors import TaskFailed
from localvertex.jobs import JobState, Outcome, Workspace
from localvertex.jobs.faults import injector
from localvertex.jobs.faults.faults import parse

TRAINER = Path(__file__).parents[1].joinpath("trainer.py").read_text()
NUM_STEPS = 30
WEIGHTS = sum(step**2 for step in range(1, NUM_STEPS + 1))

Messages = Callable[..., dict[str, Any]]
Run = Callable[..., Outcome]
Events = list[dict[str, Any]]
Trains = Callable[..., tuple[Outcome, Events]]
Log = Callable[..., str]


@pytest.mark.parametrize(
    "text",
    [
        "SIGKILL workerpool1-0 at step 30",
        "SIGTERM workerpool0-0 at 20s grace 30s",
        "SIGTERM workerpool0-0 at 2.5s grace 0s",
        "SIGSTOP workerpool1-3 at 50%",
        "preempt all every 45s grace 30s",
        "maintenance notice workerpool0-0 at step 7 grace 60s",
    ],
)
def test_a_fault_is_shown_as_it_is_written(text: str) -> None:
    assert str(parse(text)) == text


def test_spelling_may_differ_and_grace_has_a_default() -> None:
    assert parse(" sigterm  WORKERPOOL0-0 at 20 s ") == parse("SIGTERM workerpool0-0 at 20s grace 30s")
    assert parse("Maintenance Notice all at 3s").grace_seconds == 60
    assert parse("preempt all every 45s").grace_seconds == 30


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected ACTION REPLICA WHEN"),
        ("SIGKILL workerpool1-0", "expected ACTION REPLICA WHEN"),
        ("SIGKILL worker-0 at step 3", "REPLICA is like workerpool1-0, or all"),
        ("SIGHUP workerpool1-0 at step 3", "expected ACTION REPLICA WHEN"),
        ("SIGKILL workerpool1-0 at step -3", "expected ACTION REPLICA WHEN"),
        ("SIGKILL workerpool1-0 at step 3 grace 5s", "SIGKILL has no grace time"),
        ("SIGKILL workerpool1-0 at 101%", "expected at most 100%"),
        ("preempt all every 0s", "at least one second"),
    ],
)
def test_a_wrong_fault_is_one_line_with_what_is_expected(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as raised:
        parse(text)
    assert "\n" not in str(raised.value)


@pytest.fixture
def patience(tmp_path: Path) -> Path:
    """Return a file; while it exists, the processes of a job wait for a silent peer."""
    (tmp_path / "patience").touch()
    return tmp_path / "patience"


@pytest.fixture
def training(message: Messages, patience: Path) -> Messages:
    """Build a job of the small trainer; the n-th process of each replica stays at the n-th of these steps."""

    def make(*stays: int, num_workers: int = 1, spot: bool = False, restart: bool = True) -> dict[str, Any]:
        pools = [("x", 1), ("x", num_workers)] if num_workers else [("x", 1)]
        made = message(*pools, restart_job_on_worker_restart=restart, strategy="SPOT" if spot else "STANDARD")
        words = [str(NUM_STEPS), "0.02", "5", str(patience), ",".join(map(str, stays))]
        for pool in made["job_spec"]["worker_pool_specs"]:
            pool["container_spec"]["command"] = ["python", "-c", TRAINER, *words]
        return made

    return make


@pytest.fixture
def trains(run: Run, tmp_path: Path) -> Trains:
    """Train under these faults; return the outcome and the events of the primary."""

    def run_(made: dict[str, Any], *faults: str, **options: Any) -> tuple[Outcome, Events]:
        outcome = run(made, injected=tuple(map(parse, faults)), **options)
        assert outcome.state is JobState.SUCCEEDED, outcome.error
        result = json.loads((tmp_path / "out" / "checkpoints" / "result.json").read_text())
        assert result == {"final_step": NUM_STEPS, "weights": WEIGHTS}
        return outcome, events_of_primary(tmp_path)

    return run_


def events_of_primary(folder: Path) -> Events:
    path = folder / "out" / "checkpoints" / "events" / "workerpool0-0.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


def names(events: Events) -> list[str]:
    return [event["event"] for event in events]


@pytest.mark.parametrize("replica", ["workerpool0-0", "workerpool1-0"])
def test_a_killed_replica_restarts_all_and_training_ends_with_the_same_result(
    training: Messages, trains: Trains, log: Log, replica: str
) -> None:
    outcome, events = trains(training(12), f"SIGKILL {replica} at step 12")
    assert outcome.status.num_restarts == 1
    assert names(events).count("start") == 2
    assert names(events).count("restore") == 1
    assert events[names(events).index("restore")]["step"] == 10
    assert f"fault: SIGKILL {replica} at step 12" in log()
    assert f"{replica}: exit code 137" in log()
    goodput = outcome.status.goodput
    assert (goodput["num_steps"], goodput["num_failures"]) == (NUM_STEPS, 1)
    assert goodput["num_lost_steps"] == 2
    assert 0 < goodput["fraction"] < 1
    assert sum(goodput["seconds"].values()) == pytest.approx(goodput["total_seconds"], abs=0.1)
    assert list(goodput["timeline"]) == ["workerpool0-0", "workerpool1-0"]


def test_without_the_flag_a_lost_peer_still_restarts_the_job(training: Messages, trains: Trains) -> None:
    outcome, events = trains(training(12, restart=False), "SIGKILL workerpool1-0 at step 12")
    # Two restarts, or one if the chief's exit is noticed before that of the killed worker.
    assert outcome.status.num_restarts >= 1
    assert all(each.num_starts >= 2 for each in outcome.status.replicas)
    assert names(events).count("start") >= 2


@pytest.mark.slow
def test_a_frozen_replica_is_noticed_by_its_peers_and_replaced(
    training: Messages, trains: Trains, log: Log, patience: Path
) -> None:
    def report(text: str) -> None:
        # Only the silence of the frozen process is too long.
        if text.startswith("fault: SIGSTOP"):
            patience.unlink()
        else:
            patience.touch()

    outcome, _ = trains(training(12), "SIGSTOP workerpool1-0 at step 12", report=report)
    assert "workerpool0-0: exit code 134" in log()
    assert "workerpool1-0: exit code 137" in log()
    assert {each.name: each.num_starts for each in outcome.status.replicas} == {"workerpool0-0": 2, "workerpool1-0": 2}


def test_sigterm_lets_a_replica_exit_by_itself(training: Messages, trains: Trains, log: Log) -> None:
    trains(training(12), "SIGTERM workerpool1-0 at 40% grace 60s")
    assert "workerpool1-0: exit code 143" in log()


def test_preemption_is_announced_and_counted_separately(training: Messages, trains: Trains) -> None:
    faults = ["preempt all at step 8 grace 5s", "preempt workerpool1-0 at step 20 grace 0s"]
    outcome, _ = trains(training(8, 20, spot=True), *faults)
    assert outcome.status.num_preemptions == 2
    assert outcome.status.num_restarts == 2


def test_a_maintenance_notice_reaches_the_program_before_its_machine_is_lost(
    training: Messages, trains: Trains, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def monotonic() -> float:
        """Return the time, in which the grace time is over when the program has saved since the notice."""
        # The folder is made a moment before the file.
        is_begun = (tmp_path / "out" / "checkpoints" / "events" / "workerpool0-0.jsonl").exists()
        found = names(events_of_primary(tmp_path)) if is_begun else []
        is_over = "notice" in found and "save" in found[found.index("notice") :]
        return time.monotonic() + (3600 if is_over else 0)

    monkeypatch.setattr(injector, "time", SimpleNamespace(monotonic=monotonic))
    made = training(8, num_workers=0)
    outcome, events = trains(made, "maintenance notice workerpool0-0 at step 8 grace 60s")
    noticed = names(events).index("notice")
    assert "steps" in names(events)[noticed:]
    # Steps saved at the notice are not trained again.
    assert next(event["step"] for event in events if event["event"] == "restore") > 8
    assert outcome.status.num_restarts == 1


def test_a_job_that_is_preempted_too_often_fails(training: Messages, run: Run) -> None:
    faults = tuple(parse(f"preempt all at step {step} grace 0s") for step in range(1, 8))
    outcome = run(training(*range(1, 8), num_workers=0, spot=True), injected=faults)
    assert (outcome.state, outcome.status.num_preemptions) == (JobState.FAILED, 7)
    assert "preempted 7 times" in outcome.error


@pytest.mark.parametrize(
    ("fault", "base", "text"),
    [
        ("SIGKILL workerpool2-0 at 5s", "here", "no workerpool2-0; it has workerpool0-0, workerpool1-0"),
        ("SIGKILL workerpool1-0 at step 5", "", "steps, is not set"),
        ("SIGKILL workerpool1-0 at step 5", "gs://bucket/x", "gs://bucket/x; set it to a local folder"),
    ],
)
def test_a_fault_that_cannot_happen_is_refused_before_a_process_starts(
    message: Messages, run: Run, workspace: Workspace, fault: str, base: str, text: str
) -> None:
    made = message(("1", 1), ("1", 1))
    if base != "here":
        made["job_spec"]["base_output_directory"] = {"output_uri_prefix": base} if base else {}
    with pytest.raises(TaskFailed, match=text):
        run(made, injected=(parse(fault),))
    assert not workspace.folder.exists()
