"""Stopping a container command: it has its grace time, and no process and no container is left."""

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from kfp import dsl

from vertex_testing.processes import command_line, have_ended
from vertex_testing.runs import StartRun
from vertex_testing.server import wait_until

SCRIPT = """\
trap 'echo saved > saved.txt; exit 0' TERM
setsid sleep 600 &
sleep 600 &
echo ready > ready.txt
while true; do sleep 0.05; done
"""


@dsl.container_component
def hold() -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image="alpine", command=["sh", "-c", SCRIPT])


@dsl.pipeline(name="holds")
def holds() -> None:
    hold().set_env_variable("API_KEY", "planted-4711")


Start = Callable[..., tuple[subprocess.Popen[str], list[psutil.Process]]]


@pytest.fixture
def start(start_run: StartRun, tmp_path: Path) -> Start:
    """Start the pipeline and wait until its command runs."""

    def run(*options: str, **variables: str) -> tuple[subprocess.Popen[str], list[psutil.Process]]:
        process = start_run(holds, *options, **variables)
        ready = tmp_path / "runs" / "stopped" / "hold" / "ready.txt"
        wait_until(lambda: ready.exists() or process.poll() is not None)
        assert process.poll() is None, process.communicate()
        return process, psutil.Process(process.pid).children(recursive=True)

    return run


@pytest.mark.usefixtures("sandbox")
def test_a_command_in_the_sandbox_has_its_grace_time_and_leaves_nothing(start: Start, tmp_path: Path) -> None:
    process, _ = start("--grace", "60")
    runner = psutil.Process(process.pid)

    def sleeping() -> list[psutil.Process]:
        """Return all processes when those in the background are there, which begin as copies of the shell."""
        found = runner.children(recursive=True)
        return found if len([each for each in found if command_line(each) == ["sleep", "600"]]) == 2 else []

    children = wait_until(sleeping)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=50)
    assert process.returncode == 143, output
    assert (tmp_path / "runs" / "stopped" / "hold" / "saved.txt").read_text() == "saved\n"
    wait_until(lambda: have_ended(children))


@pytest.mark.usefixtures("sandbox")
def test_a_killed_runner_leaves_no_process_in_the_sandbox_and_no_secret(start: Start, tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    process, children = start("--grace", "0.3", TMPDIR=str(tmp_path / "temporary"))
    process.kill()
    process.communicate()
    wait_until(lambda: have_ended(children))
    left = [each for each in (tmp_path / "temporary").rglob("*") if each.is_file()]
    assert not [each for each in left if b"planted-4711" in each.read_bytes()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_container_is_removed_however_the_run_is_stopped(
    start: Start, docker: Path, number: signal.Signals
) -> None:
    process, children = start("--engine", "docker", "--grace", "0.3")
    process.send_signal(number)
    process.communicate(timeout=50)
    wait_until(lambda: have_ended(children))
    calls = [json.loads(line)["arguments"] for line in (docker / "calls.jsonl").read_text().splitlines()]
    assert [each[0] for each in calls] == ["version", "run", "rm"]
    name = calls[1][calls[1].index("--name") + 1]
    assert calls[2] == ["rm", "--force", name]
