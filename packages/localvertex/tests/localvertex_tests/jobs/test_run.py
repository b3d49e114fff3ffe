"""Jobs from start to end: restarts, timeout, cancellation, reports."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from localvertex._base import linux
from localvertex.jobs import JobState, JobStatus, Outcome
from localvertex.jobs.job import Scheduling

# Every start adds a line to a file of the replica; `count` is the number of lines.
COUNT = """
import json, os, pathlib, sys, time
task = json.loads(os.environ["CLUSTER_SPEC"])["task"]
folder = pathlib.Path(sys.argv[1])
with (folder / f"{task['type']}-{task['index']}.starts").open("a") as file:
    file.write(f"{os.getpid()}\\n")
def starts(name): return len((folder / f"{name}.starts").read_text().split()) if (folder / f"{name}.starts").exists() else 0
count = starts(f"{task['type']}-{task['index']}")
def wait(condition):
    while not condition(): time.sleep(0.01)
"""  # noqa: E501

Run = Callable[..., Outcome]
Messages = Callable[..., dict[str, Any]]
Starts = Callable[[], dict[str, int]]


@pytest.fixture
def starts(tmp_path: Path) -> Starts:
    """Count the starts of each replica."""
    return lambda: {path.stem: len(path.read_text().split()) for path in tmp_path.glob("*.starts")}


def test_a_worker_that_fails_is_restarted_alone(
    message: Messages, run: Run, starts: Starts, log: Callable[..., str]
) -> None:
    chief = COUNT + "wait(lambda: starts('workerpool1-0') == 3)"
    worker = COUNT + "os.kill(os.getpid(), 9) if count < 3 else time.sleep(600)"
    outcome = run(message((chief, 1), (worker, 1)))
    assert outcome.state is JobState.SUCCEEDED
    assert starts() == {"workerpool0-0": 1, "workerpool1-0": 3}
    assert outcome.status.num_restarts == 2
    assert "workerpool1-0: restart 2 of 5" in log()
    assert log("workerpool1-0.log").count("--- start") == 2


@pytest.mark.skipif(not linux.is_used(), reason="only Linux has forked supervisors")
def test_each_start_of_a_replica_has_a_forked_supervisor(message: Messages, run: Run, log: Callable[..., str]) -> None:
    chief = COUNT + "wait(lambda: starts('workerpool1-0') == 3)"
    worker = COUNT + "print(open(f'/proc/{os.getppid()}/cmdline').read(), flush=True); "
    worker += "os.kill(os.getpid(), 9) if count < 3 else time.sleep(600)"
    before = psutil.Process().children()
    assert run(message((chief, 1), (worker, 1))).state is JobState.SUCCEEDED
    assert log("workerpool1-0.log").count("fork_server.py") == 3
    assert psutil.Process().children() == before


def test_a_worker_that_fails_restarts_all_replicas_if_the_job_asks_for_it(
    message: Messages, run: Run, starts: Starts
) -> None:
    # No replica ends before all three have noted this start: one stopped before that would be a start behind.
    replicas = "('workerpool0-0', 'workerpool1-0', 'workerpool1-1')"
    all_noted = f"wait(lambda: all(starts(name) >= count for name in {replicas}))"
    chief = COUNT + all_noted + "; time.sleep(600) if count == 1 else None"
    worker = COUNT + all_noted + "; os.kill(os.getpid(), 9) if count == 1 else time.sleep(600)"
    outcome = run(message((chief, 1), (worker, 2), restart_job_on_worker_restart=True))
    assert outcome.state is JobState.SUCCEEDED
    assert starts() == {"workerpool0-0": 2, "workerpool1-0": 2, "workerpool1-1": 2}


def test_restarts_end_after_five_per_replica_in_each_of_four_attempts(
    message: Messages, run: Run, starts: Starts
) -> None:
    # The primary notes its start before the worker fails, or it could be a start behind.
    worker = COUNT + "wait(lambda: starts('workerpool0-0') > (count - 1) // 6); print('broken', flush=True); "
    outcome = run(message((COUNT + "time.sleep(600)", 1), (worker + "os.kill(os.getpid(), 9)", 1)))
    assert outcome.state is JobState.FAILED
    assert starts() == {"workerpool0-0": 4, "workerpool1-0": 24}
    assert "5 restarts and 3 retries of the job are used up" in outcome.error
    assert outcome.exit_code == 137


def test_an_uncaught_exception_ends_the_job_at_once(message: Messages, run: Run, starts: Starts) -> None:
    chief = COUNT + "time.sleep(600)"
    worker = COUNT + "wait(lambda: starts('workerpool0-0')); raise ValueError('broken')"
    # A task of a pipeline may still be retried, as on Vertex AI.
    outcome = run(message((chief, 1), (worker, 1), restart_job_on_worker_restart=True))
    assert (outcome.state, outcome.is_permanent) == (JobState.FAILED, False)
    assert starts() == {"workerpool0-0": 1, "workerpool1-0": 1}
    assert outcome.error == "workerpool1-0: exit code 1: ValueError: broken"


def test_an_exit_code_of_the_table_restarts_the_whole_job(message: Messages, run: Run, starts: Starts) -> None:
    chief = COUNT + "wait(lambda: count == 2 and starts('workerpool1-0') == 2)"
    worker = COUNT + "wait(lambda: starts('workerpool0-0') == count); sys.exit(134) if count == 1 else time.sleep(600)"
    outcome = run(message((chief, 1), (worker, 1)))
    assert outcome.state is JobState.SUCCEEDED
    assert starts() == {"workerpool0-0": 2, "workerpool1-0": 2}


@pytest.mark.parametrize(
    ("code", "scheduling", "num_starts"),
    [
        ("sys.exit(2)", {}, 1),
        ("sys.exit(1)", {}, 1),
        ("sys.exit(-1)", {}, 1),
        ("os.abort()", {}, 4),
        ("os._exit(134)", {}, 4),
        ("sys.exit(11)", {}, 4),
        ("os.kill(os.getpid(), 9)", {}, 24),
        ("sys.exit(143)", {}, 24),
        ("os._exit(134)", {"disable_retries": True}, 1),
        ("os.kill(os.getpid(), 9)", {"disable_retries": True, "restart_job_on_worker_restart": True}, 1),
    ],
)
def test_the_rule_and_the_job_decide_what_is_permanent(
    message: Messages,
    run: Run,
    starts: Starts,
    code: str,
    scheduling: dict[str, Any],
    num_starts: int,
) -> None:
    outcome = run(message((COUNT + code, 1), **scheduling))
    assert outcome.state is JobState.FAILED
    assert starts() == {"workerpool0-0": num_starts}


def test_the_end_of_the_primary_ends_the_others(message: Messages, run: Run, tmp_path: Path) -> None:
    worker = COUNT + "import signal; signal.signal(signal.SIGTERM, lambda *_: None)\nwhile True: time.sleep(600)"
    outcome = run(
        message((COUNT + "wait(lambda: starts('workerpool1-1') and starts('workerpool1-0'))", 1), (worker, 2))
    )
    assert outcome.state is JobState.SUCCEEDED
    pids = [int(path.read_text()) for path in tmp_path.glob("workerpool1*.starts")]
    assert len(pids) == 2
    assert not any(map(psutil.pid_exists, pids))


def test_a_worker_that_is_done_is_not_restarted(message: Messages, run: Run, starts: Starts) -> None:
    chief = COUNT + "wait(lambda: starts('workerpool1-0')); time.sleep(0.5)"
    assert run(message((chief, 1), (COUNT, 1))).state is JobState.SUCCEEDED
    assert starts() == {"workerpool0-0": 1, "workerpool1-0": 1}


def test_a_job_that_exceeds_its_timeout_fails(message: Messages, run: Run) -> None:
    outcome = run(message(("import time; time.sleep(600)", 1), timeout="1s"))
    assert (outcome.state, outcome.error) == (JobState.FAILED, "the job exceeded its timeout of 1 s")


def test_cancelling_ends_every_process_and_can_be_observed(message: Messages, run: Run, tmp_path: Path) -> None:
    cancel = threading.Event()
    seen: list[JobState] = []

    def observe(status: JobStatus) -> None:
        seen.append(status.state)
        if status.state is JobState.RUNNING:
            cancel.set()

    outcome = run(
        message((COUNT + "time.sleep(600)", 1), (COUNT + "time.sleep(600)", 1)), cancel=cancel, observe=observe
    )
    assert outcome.state is JobState.CANCELLED
    assert [state for i, state in enumerate(seen) if i == 0 or seen[i - 1] is not state] == [
        JobState.RUNNING,
        JobState.CANCELLING,
        JobState.CANCELLED,
    ]
    pids = [int(pid) for path in tmp_path.glob("*.starts") for pid in path.read_text().split()]
    assert not any(map(psutil.pid_exists, pids))


def test_restarts_are_reported_as_they_happen(message: Messages, run: Run, log: Callable[..., str]) -> None:
    program = (
        "import os, pathlib, sys; p = pathlib.Path(sys.argv[1]) / 'seen'\n"
        "if not p.exists(): p.touch(); print('no data', flush=True); os.kill(os.getpid(), 9)"
    )
    reported: list[str] = []
    run(message((program, 1)), report=reported.append)
    assert reported == ["workerpool0-0: exit code 137 (SIGKILL); last line of its log: no data; restart 1 of 5"]
    assert "exit code 0" in log()


@pytest.mark.parametrize(("text", "expected"), [("true", True), ("false", False), (True, True), (None, False)])
def test_switches_of_scheduling_may_be_texts(text: Any, expected: bool) -> None:
    assert Scheduling.of({"restart_job_on_worker_restart": text}).restart_job_on_worker_restart is expected
    assert Scheduling.of({"disable_retries": text}).disable_retries is expected
