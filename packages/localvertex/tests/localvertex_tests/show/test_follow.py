"""`logs --follow` beside a run in a process of its own: what is added is printed at once, all of it, once."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kfp import dsl
from localvertex_tests.support.tuning import KIND, pool, tune

from vertex_testing.runs import STEP, Command, Compile


@dsl.component(**STEP)
def talk(folder: str) -> None:
    import os
    import time

    print("first: ä", flush=True)
    while not os.path.exists(f"{folder}/go"):
        time.sleep(0.05)
    print("second", flush=True)


@dsl.component(**STEP)
def fail() -> None:
    print("the last words")
    raise ValueError("no")


@dsl.pipeline(name="talks")
def talks(folder: str) -> None:
    fail().after(talk(folder=folder))


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start `python -m localvertex ...` in the test's folder."""
    started = []

    def start_(*words: str | Path) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "localvertex", *map(str, words)]
        environment = os.environ | {"PYTHONIOENCODING": "utf-8"}
        output = subprocess.PIPE if words[0] == "logs" else subprocess.DEVNULL
        process = subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=output, stderr=subprocess.STDOUT, text=True
        )
        started.append(process)
        return process

    yield start_
    (tmp_path / "go").touch()
    for process in started:
        process.terminate()
        process.wait(60)
        if process.stdout is not None:
            process.stdout.close()


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, path
        time.sleep(0.05)


@pytest.mark.parametrize("task", ["", "talk", "fail"])
def test_what_is_added_is_printed_at_once_and_once(
    start: Start, compiled: Compile, command: Command, tmp_path: Path, task: str
) -> None:
    run = start("run", compiled(talks), "--run-id", "live", "-p", f"folder={tmp_path}", "--no-cache")
    wait_for(tmp_path / "runs" / "live" / "talk" / "log.txt")
    following = start("logs", "latest", *([task] if task else []), "--follow")
    output = following.stdout
    assert output is not None
    lines = []
    if task != "fail":
        while "first: ä\n" not in lines:
            lines.append(output.readline())
            assert lines[0] == "==> talk (log.txt) <==\n"
        # The run continues, and so does the command.
        assert following.poll() is None
    (tmp_path / "go").touch()
    text = "".join(lines) + output.read()
    assert following.wait(60) == 0
    run.wait(60)
    assert text.count("second\n") == (task != "fail")
    assert text.count("the last words\n") == (task != "talk")
    # A run that has ended is printed, and the command ends.
    assert command("logs", "live", *([task] if task else []), "--follow").stdout == text


def test_a_task_or_run_that_does_not_exist_is_named(start: Start, compiled: Compile, command: Command) -> None:
    missing = command("logs", "latest", "--follow")
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)


def test_a_task_that_never_comes_is_an_error_at_the_end_of_the_run(
    start: Start, compiled: Compile, tmp_path: Path
) -> None:
    start("run", compiled(talks), "--run-id", "live", "-p", f"folder={tmp_path}", "--no-cache")
    wait_for(tmp_path / "runs" / "live" / "talk" / "log.txt")
    following = start("logs", "live", "deploy", "--follow")
    time.sleep(0.5)
    assert following.poll() is None
    (tmp_path / "go").touch()
    text, _ = following.communicate(timeout=60)
    assert following.returncode == 2
    assert text.startswith("error: the run has no task 'deploy'")


TRIAL = """
print("trial", trial, flush=True)
wait_for(folder / "go")
report("accuracy", 1, 1)
print("end", trial)
"""


def test_the_logs_of_trials_are_followed_and_printed(
    start: Start, compiled: Compile, command: Command, tmp_path: Path
) -> None:
    values = {"pools": [pool(TRIAL, tmp_path)], "parameters": [KIND]}
    given = [word for name, value in values.items() for word in ("-p", f"{name}={json.dumps(value)}")]
    run = start("run", compiled(tune), "--run-id", "live", *given)
    trials = tmp_path / "runs" / "live" / "hyperparameter-tuning-job" / "trials"
    for number in (1, 2):
        wait_for(trials / str(number) / "workerpool0-0.log")
    following = start("logs", "live", "hyperparameter-tuning-job", "--follow")
    output = following.stdout
    assert output is not None
    lines: list[str] = []
    while not {"trial 1\n", "trial 2\n"} <= set(lines):
        lines.append(output.readline())
        assert lines[-1], "it ended while the trials were running"
    assert following.poll() is None
    (tmp_path / "go").touch()
    text = "".join(lines) + output.read()
    assert following.wait(60) == 0
    assert run.wait(60) == 0
    for number in (1, 2):
        assert f"==> hyperparameter-tuning-job (trials/{number}/workerpool0-0.log) <==\n" in text
        assert (text.count(f"trial {number}\n"), text.count(f"end {number}\n")) == (1, 1)
    printed = command("logs", "live").stdout
    assert printed.startswith("==> hyperparameter-tuning-job (log.txt) <==\n")
    for number in (1, 2):
        title = f"==> hyperparameter-tuning-job (trials/{number}/workerpool0-0.log) <==\n"
        assert f"{title}trial {number}\nend {number}\n" in printed
