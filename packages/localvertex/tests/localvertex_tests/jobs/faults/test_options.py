"""Faults on the command line: an error is a single line, and nothing runs."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from kfp import dsl

Command = Callable[..., CompletedProcess[str]]


@dsl.component(base_image="python:3.11", install_kfp_package=False)
def greet() -> str:
    return "hello"


@dsl.pipeline(name="greets")
def greets() -> None:
    greet()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--fault", "SIGKILL everything"], "--fault 'SIGKILL everything': expected ACTION REPLICA WHEN"),
        (["--fault", "SIGSTOP workerpool1-0 at 5s grace 3s"], "SIGSTOP has no grace time; leave it out"),
    ],
)
def test_wrong_options_leave_nothing_behind(
    compiled: Callable[..., Path], command: Command, tmp_path: Path, options: list[str], message: str
) -> None:
    done = command("run", compiled(greets), *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_faults_do_nothing_in_a_pipeline_without_custom_jobs(compiled: Callable[..., Path], command: Command) -> None:
    done = command("run", compiled(greets), "--fault", "SIGKILL all at 1s")
    assert done.returncode == 0, done.stdout + done.stderr
