"""Faults on the command line: what is wrong is one line, and nothing runs."""

import pytest
from kfp import dsl


@dsl.component(base_image="python:3.11", install_kfp_package=False)
def greet() -> str:
    return "hello"


@dsl.pipeline(name="greets")
def greets():
    greet()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--fault", "SIGKILL everything"], "--fault 'SIGKILL everything': expected ACTION REPLICA WHEN"),
        (["--fault", "SIGSTOP workerpool1-0 at 5s grace 3s"], "SIGSTOP leaves no grace time; leave it out"),
        (["--seed", "7"], "--seed 7 is for --faults random, which is not given"),
    ],
)
def test_wrong_options_leave_nothing_behind(compiled, command, tmp_path, options, message):
    done = command("run", compiled(greets), *options)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_faults_of_a_pipeline_without_custom_jobs_do_nothing(compiled, command):
    done = command("run", compiled(greets), "--faults", "random", "--fault", "SIGKILL all at 1s")
    assert done.returncode == 0, done.stdout + done.stderr
