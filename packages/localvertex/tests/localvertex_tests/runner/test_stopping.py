"""Stopping a run ends every process it started, however the run is stopped."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from kfp import dsl

from vertex_testing.processes import have_ended, with_own_id, working_in
from vertex_testing.runs import STEP, Command, Execute, StartRun
from vertex_testing.server import wait_until


@dsl.component(**STEP)
def spread(folder: str, stubborn: bool) -> None:
    """Start a child, and one in its own session, and wait forever."""
    import os
    import pathlib
    import signal
    import subprocess
    import sys
    import time

    if stubborn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ignore = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " if stubborn else ""
    code = ignore + "import time; time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", code])
    escaped = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    for pid in (os.getpid(), child.pid, escaped.pid):
        (pathlib.Path(folder) / str(pid)).touch()
    (pathlib.Path(folder) / "ready").touch()
    time.sleep(600)


@dsl.component(**STEP)
def follow(text: str = "") -> str:
    return text


@dsl.pipeline(name="spreads")
def spreads(folder: str, stubborn: bool = False) -> None:
    spreading = spread(folder=folder, stubborn=stubborn).set_retry(3)
    # A stopped run ends pending steps before those that run.
    follow(text=follow().after(spreading).output)


Start = Callable[..., tuple[subprocess.Popen[str], list[psutil.Process]]]


@pytest.fixture
def running(start_run: StartRun, tmp_path: Path) -> Start:
    """Start the pipeline from the command line and wait until its processes exist; the first three are the step's."""

    def start(*options: str, stubborn: bool = False) -> tuple[subprocess.Popen[str], list[psutil.Process]]:
        folder = tmp_path / "pids"
        folder.mkdir()
        values = ("--parameter", f"folder={folder}", "--parameter", f"stubborn={str(stubborn).lower()}")
        process = start_run(spreads, *options, *values)
        wait_until((folder / "ready").exists)
        found = psutil.Process(process.pid).children(recursive=True)
        own = [with_own_id(int(each.name), found) for each in folder.iterdir() if each.name.isdigit()]
        return process, [*own, *found]

    return start


def assert_ended(children: list[psutil.Process]) -> None:
    """Check that no process of a run is left that has ended."""
    assert have_ended(children[:3])
    # Their supervisor reports their end, and then ends by itself.
    wait_until(lambda: have_ended(children))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_every_process_and_is_recorded(running: Start, tmp_path: Path, number: int, code: int) -> None:
    process, children = running()
    assert len(children) >= 4
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == code, output
    assert_ended(children)
    record = json.loads((tmp_path / "runs" / "stopped" / "run.json").read_text())
    assert record["state"] == "CANCELLED"
    assert record["stopped_by_signal"] == number
    assert [task["state"] for task in record["tasks"]] == ["CANCELLED"] * 3
    assert "Traceback" not in output


def test_processes_that_ignore_sigterm_are_killed_after_the_grace_time(running: Start) -> None:
    process, children = running("--grace", "0.3", stubborn=True)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert_ended(children)


def test_a_second_ctrl_c_does_not_wait_for_the_grace_time(running: Start) -> None:
    process, children = running("--grace", "300", stubborn=True)
    # Signals that arrive before the first is handled count as one, however slow the machine is.
    for _ in range(100):
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        if process.poll() is not None:
            break
    process.communicate(timeout=60)
    assert_ended(children)


def test_a_killed_runner_leaves_no_orphan_and_its_run_shows_as_failed(running: Start, command: Command) -> None:
    process, children = running("--grace", "0.3", stubborn=True)
    process.kill()
    process.communicate()
    wait_until(lambda: have_ended(children))
    shown = command("list").stdout
    assert "stopped" in shown
    assert "FAILED" in shown


def test_a_suspended_process_is_ended_too(running: Start) -> None:
    process, children = running("--grace", "0.5")
    os.kill(children[0].pid, signal.SIGSTOP)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert_ended(children)


@dsl.component(**STEP)
def leave_behind(folder: str) -> None:
    import pathlib
    import subprocess
    import sys

    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    (pathlib.Path(folder) / "left").touch()


@dsl.pipeline(name="leaves")
def leaves(folder: str) -> None:
    leave_behind(folder=folder)


def test_background_processes_of_a_step_end_with_it(execute: Execute, tmp_path: Path) -> None:
    assert execute(leaves, {"folder": str(tmp_path)})["state"] == "SUCCEEDED"
    assert (tmp_path / "left").exists()
    assert not working_in(tmp_path)
