"""Run without the features that only Linux offers, forced by the variable that linux.py reads."""

import os
import signal
import socket
import sys
import time
from pathlib import Path

import psutil
import pytest
from kfp import dsl

from localvertex._base import linux
from localvertex.containers.choice import Choice
from localvertex.processes.network import loopback, sockets
from localvertex.processes.processes import Processes
from vertex_testing.processes import have_ended
from vertex_testing.runs import STEP, StartRun
from vertex_testing.server import wait_until


@pytest.fixture(autouse=True)
def _portable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALVERTEX_PORTABLE", "1")


@dsl.component(**STEP)
def greet(name: str) -> str:
    return f"hello {name}"


@dsl.component(**STEP)
def spread(folder: str) -> None:
    """Start a child, and one in its own session, and wait forever."""
    import os
    import pathlib
    import subprocess
    import time

    child = subprocess.Popen(["sleep", "600"])
    escaped = subprocess.Popen(["sleep", "600"], start_new_session=True)
    for name, pid in (("step", os.getpid()), ("child", child.pid), ("escaped", escaped.pid)):
        (pathlib.Path(folder) / f"{name}.new").write_text(str(pid))
        (pathlib.Path(folder) / f"{name}.new").rename(pathlib.Path(folder) / name)
    time.sleep(600)


@dsl.pipeline(name="greets")
def greets(name: str = "you") -> None:
    greet(name=greet(name=name).output)


@dsl.pipeline(name="spreads")
def spreads(folder: str) -> None:
    spread(folder=folder)


def test_a_pipeline_runs(start_run: StartRun) -> None:
    process = start_run(greets)
    output, _ = process.communicate(timeout=120)
    assert (process.returncode, "SUCCEEDED" in output) == (0, True), output


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_of_a_steps_group_outlives_a_runner_that_is_killed_or_stopped(
    start_run: StartRun, tmp_path: Path, number: int
) -> None:
    process = start_run(spreads, "--grace", "0.3", "--parameter", f"folder={tmp_path}")
    wait_until((tmp_path / "escaped").exists)
    escaped = psutil.Process(int((tmp_path / "escaped").read_text()))
    others = [each for each in psutil.Process(process.pid).children(recursive=True) if each != escaped]
    assert {int((tmp_path / name).read_text()) for name in ("step", "child")} < {each.pid for each in others}
    process.send_signal(number)
    process.communicate(timeout=60)
    wait_until(lambda: have_ended(others))
    # Only Linux lists the processes that have left the group.
    escaped.kill()


def test_a_program_in_a_shell_has_its_grace_time_and_ends_the_step_when_it_ends(tmp_path: Path) -> None:
    code = (
        "import signal, sys, time\n"
        "def end(*_): time.sleep(0.5); print('saved', flush=True); sys.exit()\n"
        "signal.signal(signal.SIGTERM, end); print('up', flush=True); time.sleep(600)"
    )
    log = tmp_path / "log"
    command = ["sh", "-c", '"$@"; true', "sh", sys.executable, "-c", code]
    process = Processes(grace_seconds=300).start(command, cwd=tmp_path, env=dict(os.environ), log=log)
    wait_until(lambda: log.exists() and log.read_text())
    process.stop()
    assert process.wait() == 128 + signal.SIGTERM
    assert log.read_text() == "up\nsaved\n"


def test_what_a_command_leaves_in_its_group_ends_with_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    started = time.monotonic()
    command = ["sh", "-c", "sleep 600 & echo $!"]
    assert Processes(grace_seconds=300).run(command, cwd=tmp_path, env=dict(os.environ), log=log) == 0
    wait_until(lambda: not psutil.pid_exists(int(log.read_text())))
    assert time.monotonic() - started < 60


def test_there_is_no_sandbox() -> None:
    advice = "add --engine docker, --engine podman or --allow-host-commands"
    assert Choice().how.problem == f"container commands need a sandbox or an engine: {advice}"


def test_the_owner_of_a_connection_is_unknown_and_open_ports_are_reported_once() -> None:
    assert sockets.are_own(1)
    assert sockets.is_from_own_user(None, None)
    reported: list[str] = []
    with socket.create_server(("", 0)) as server:
        ports = loopback.LoopbackPorts([server.getsockname()[1]], reported.append)
        ports.confine()
        ports.confine()
    (line,) = reported
    assert line.startswith("warning: other machines may reach port ")
    assert line.endswith(" cannot be confined to this machine: only Linux can")
    loopback.LoopbackPorts([], reported.append)
    assert len(reported) == 1


def test_nothing_of_linux_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("builtins.open", lambda path, **_: opened.append(path) or (_ for _ in ()).throw(OSError))
    assert (linux.descendants(1), linux.cpu_name(), linux.num_cores(), linux.container_bytes()) == (
        [],
        "",
        0,
        sys.maxsize,
    )
    assert set(opened) == {os.devnull}


def test_the_variable_is_read_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not linux.is_used()
    monkeypatch.delenv("LOCALVERTEX_PORTABLE")
    assert linux.is_used() is (sys.platform == "linux")
