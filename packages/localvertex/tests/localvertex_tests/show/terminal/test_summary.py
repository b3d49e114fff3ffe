"""Every ending of a run: exact, true, and once."""

import json
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl

from vertex_testing.html import report_data
from vertex_testing.runs import STEP, Command, Compile
from vertex_testing.terminal import Terminal


@dsl.component(**STEP)
def fail(reason: str) -> None:
    text = f"no {reason} found"
    raise ValueError(text)


@dsl.component(**STEP)
def wait_forever(folder: str) -> None:
    import pathlib
    import time

    (pathlib.Path(folder) / "started").touch()
    time.sleep(600)


@dsl.pipeline(name="two-errors")
def two_errors() -> None:
    fail(reason="images")
    fail(reason="labels").set_display_name("other")


@dsl.pipeline(name="job-error")
def job_error(pools: list) -> None:
    CustomTrainingJobOp(display_name="train", worker_pool_specs=pools)


@dsl.pipeline(name="waits")
def waits(folder: str) -> None:
    wait_forever(folder=folder)
    fail(reason="images")


def run_words(file: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "localvertex", "run", file.name, "--run-id", "r", *words]


def wait_until_exists(path: Path) -> None:
    deadline = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("has_terminal", [True, False])
def test_each_error_is_said_once(compiled: Compile, tmp_path: Path, has_terminal: bool) -> None:
    words = run_words(compiled(two_errors))
    if has_terminal:
        terminal = Terminal(words, width=80, cwd=tmp_path)
        assert terminal.end() == 1
        output = terminal.text
    else:
        output = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True).stdout
    for title, reason in (("fail", "images"), ("other", "labels")):
        assert output.count(f"no {reason} found") == 1
        assert f"failed: {title}: exit code 1: ValueError: no {reason} found" in " ".join(output.split())
    assert output.count("log: ") == 1
    assert len(re.findall("^r: FAILED after [0-9.]+ s\r*$", output, re.MULTILINE)) == 1
    assert len(re.findall("^resume: ", output, re.MULTILINE)) == 1
    # Neither lacks anything on this machine.
    assert "outputs = " not in output


@dsl.component(**STEP)
def call_the_cloud(count: int) -> str:
    import a_module_that_is_not_here

    return str(a_module_that_is_not_here)


@dsl.container_component
def start_a_missing_program() -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image="x", command=["sh", "-c", "exit 127"])


@dsl.pipeline(name="not-here")
def not_here() -> None:
    call_the_cloud(count=1)
    start_a_missing_program()
    fail(reason="images")


def test_only_steps_that_cannot_run_here_are_proposed_to_be_given(
    compiled: Compile, command: Command, tmp_path: Path
) -> None:
    done = command("run", compiled(not_here), "--run-id", "r", "--allow-host-commands")
    assert done.returncode == 1
    proposed = done.stdout.partition("add to localvertex.toml and run the file again:\n\n")[2]
    assert proposed.startswith(
        '[step.call-the-cloud]\noutputs = {Output = "text"}\n\n[step.start-a-missing-program]\noutputs = {}\n\nresume: '
    )


@dsl.component(**STEP)
def read_images(folder: str, limit: int, note: str) -> None:
    import os
    import sys

    if not os.path.isdir(folder):
        print(f"error: source {folder!r} is not a folder, for example of limit images", file=sys.stderr)
        sys.exit(2)


@dsl.pipeline(name="reads")
def reads(source: str, limit: int = 7, note: str = "") -> None:
    read_images(folder=source, limit=limit, note=note)


@dsl.pipeline(name="reads-too")
def reads_by_another_name(images: str, limit: int = 7, note: str = "") -> None:
    read_images(folder=images, limit=limit, note=note)


@pytest.mark.parametrize(("pipeline", "name"), [(reads, "source"), (reads_by_another_name, "images")])
def test_a_wrong_parameter_is_named_with_the_command_that_corrects_it(
    pipeline: Any, name: str, compiled: Compile, command: Command, tmp_path: Path
) -> None:
    file, wrong, right = compiled(pipeline), f"{tmp_path}/my photos", tmp_path / "other photos"
    words = ["-p", f"{name}={wrong}", "-p", "note=@@it's one", "--region", "europe-west4", "--max-backoff", "1"]
    done = command("run", file, "--run-id", "r", *words)
    assert done.returncode == 1
    *_, last = done.stdout.splitlines()
    assert last.startswith(f"correct {name}, now '{wrong[:20]}")
    assert "outputs = " not in done.stdout
    assert "resume: " not in done.stdout
    assert command("show", "r").stdout.splitlines()[-1] == last
    data = report_data(tmp_path / "runs" / "r" / "run.html")
    assert data["wrong_parameter"] == name
    pasted = last.partition("run again: ")[2]
    assert shlex.split(data["resume"])[-8:] == shlex.split(pasted)[-8:]
    right.mkdir()
    pasted = pasted.replace(f"{name}=VALUE", shlex.quote(f"{name}={right}")) + " --run-id corrected"
    assert subprocess.run(pasted, shell=True, cwd="/", capture_output=True).returncode == 0
    found = json.loads((tmp_path / "runs" / "corrected" / "run.json").read_text())
    assert found["parameters"] == {name: str(right), "limit": 7, "note": "@it's one"}
    assert (found["region"], found["resume_options"]) == ("europe-west4", ["--max-backoff=1.0"])


@pytest.mark.parametrize("has_terminal", [True, False])
def test_the_error_of_a_job_is_said_once_with_the_log_of_its_replica(
    compiled: Compile, tmp_path: Path, has_terminal: bool
) -> None:
    code = "import sys, time; print('reading'); print('error: ' + 'wrong' + ' size', flush=True); sys.exit(2)"
    spec = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1}
    pools = [
        spec | {"container_spec": {"image_uri": "x", "command": ["python", "-c", text]}}
        for text in ("print('the primary', flush=True); import time; time.sleep(600)", code)
    ]
    words = run_words(compiled(job_error), "-p", f"pools={json.dumps(pools)}", "--grace", "0")
    if has_terminal:
        terminal = Terminal(words, width=80, cwd=tmp_path)
        assert terminal.end() == 1
        output = terminal.text
    else:
        output = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True).stdout
    assert output.count("wrong size") == 1
    assert "failed: custom-training-job: workerpool1-0: exit code 2: error: wrong size" in output
    assert "  | reading" in output
    assert "  | the primary" not in output
    assert output.count("log: ") == 1
    assert "/workerpool1-0.log" in output
    assert "outputs = " not in output


def test_a_step_that_failed_before_ctrl_c_is_reported(compiled: Compile, tmp_path: Path) -> None:
    words = run_words(compiled(waits), "-p", f"folder={tmp_path}", "--max-parallel", "2")
    lines = []
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        wait_until_exists(tmp_path / "started")
        for line in process.stdout or []:
            lines.append(line.rstrip())
            if line.startswith("fail: FAILED"):
                process.send_signal(signal.SIGINT)
    assert process.returncode == 130
    assert "failed: fail: exit code 1: ValueError: no images found" in lines
    assert re.fullmatch(r"r: CANCELLED after [\d.]+ s, stopped by Ctrl-C", lines[-3])
    assert lines[-2] == f"report: {tmp_path}/runs/r/run.html"
    assert lines[-1].startswith("resume: ")


def test_a_run_that_is_running_and_one_that_was_killed(compiled: Compile, command: Command, tmp_path: Path) -> None:
    words = run_words(compiled(waits), "-p", f"folder={tmp_path}", "--grace", "0")
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL)
    wait_until_exists(tmp_path / "started")
    shown = command("show", "r").stdout.splitlines()
    assert re.fullmatch(r"r: RUNNING for [\d.]+ s", shown[-1])
    process.kill()
    process.wait()
    deadline = time.monotonic() + 60
    while (shown := command("show", "r").stdout.splitlines())[-1].startswith("r: RUNNING"):
        assert time.monotonic() < deadline, shown
        time.sleep(0.1)
    assert any(re.fullmatch(r"wait-forever +RUNNING +[\d.]+  when the run was killed", line) for line in shown)
    assert shown.count("r: FAILED, the process that ran it was killed") == 1
    assert shown[-1].startswith("resume: ")
    assert shown[-1].endswith("--grace=0.0")
    assert "failed: the process that ran it was killed" not in shown


def test_a_refused_run_ends_with_its_reasons_and_writes_nothing(command: Command, tmp_path: Path) -> None:
    done = command("run", "absent.json")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists()
