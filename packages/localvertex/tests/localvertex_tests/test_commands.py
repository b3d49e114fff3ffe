"""The commands, from a run to its removal, and wrong input."""

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from kfp import dsl

from vertex_testing.runs import STEP, Command, Compile


@dsl.component(**STEP)
def greet(name: str) -> str:
    print(f"greeting {name}")
    return f"hello {name}"


@dsl.component(**STEP)
def measure(text: str, metrics: dsl.Output[dsl.Metrics], model: dsl.Output[dsl.Model]) -> None:
    if not text:
        raise ValueError("the text is empty; give --parameter name=...")
    metrics.log_metric("length", float(len(text)))
    with open(model.path, "w") as file:
        file.write(text)


@dsl.pipeline(name="greeting")
def greeting(name: str = "world", times: int = 2) -> None:
    measure(text=greet(name=name).output)


@dsl.pipeline(name="failing")
def failing(text: str = "") -> None:
    measure(text=text)


def test_a_run_from_start_to_end(compiled: Compile, command: Command, command_process: Command, tmp_path: Path) -> None:
    compiled(greeting, "pipeline.json")
    (tmp_path / "values.yaml").write_text("name: file\ntimes: 3\n")
    words = ["run", "pipeline.json", "--parameter-file", "values.yaml", "--parameter", "name=a=b", "--run-id", "first"]
    done = command_process(*words)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert "greet: RUNNING" in lines
    figure = r"peak \d+ MB of 16 GB \(e2-standard-4\)"
    assert re.search(rf"^greet +SUCCEEDED +\d+\.\d  {figure}$", done.stdout, re.MULTILINE)
    assert "  length = 9" in lines
    assert f"  model: {tmp_path}/runs/first/measure/model" in lines
    assert lines[-1] == f"report: {tmp_path}/runs/first/run.html"
    assert len([line for line in lines if line.startswith("warning: ")]) == 1
    record = json.loads((tmp_path / "runs" / "first" / "run.json").read_text())
    assert record["parameters"] == {"name": "a=b", "times": 3}

    again = command(*words)
    assert again.returncode == 2
    assert again.stderr.startswith("error: --run-id 'first'")

    assert stat.S_IMODE((tmp_path / "runs").stat().st_mode) == 0o700
    second = command(
        "run", "pipeline.json", "--run-id", "second", "--no-cache", "--project", "p", "--region", "europe-west4"
    )
    assert second.returncode == 0
    assert [line.split()[0] for line in command("list").stdout.splitlines()[1:]] == ["second", "first"]
    assert "first: SUCCEEDED" in command("show", "f").stdout
    assert "second: SUCCEEDED" in command("show", "latest").stdout
    assert "greeting a=b" in command("logs", "first", "greet").stdout
    everything = command("logs", "second").stdout
    assert "==> greet (log.txt) <==" in everything
    assert "==> measure (log.txt) <==" in everything

    assert "removed" in command("clean", "first", "--yes").stdout
    assert not (tmp_path / "runs" / "first").exists()
    assert (tmp_path / "runs" / "second").exists()
    assert command("clean", "--yes").returncode == 0
    assert sorted(os.listdir(tmp_path / "runs")) == [".localvertex", "models"]
    assert command("list").stdout == "no runs in 'runs'\n"


def test_a_failed_run_shows_the_end_of_the_log_and_its_path(
    compiled: Compile, command: Command, tmp_path: Path
) -> None:
    compiled(failing)
    done = command("run", "pipeline.json", "--run-id", "failed")
    assert done.returncode == 1
    error = "failed: measure: exit code 1: ValueError: the text is empty; give --parameter name=..."
    assert error in done.stdout.splitlines()
    assert (done.stdout + done.stderr).count("the text is empty") == 2, "in the error and in the quoted source line"
    assert "  | Traceback (most recent call last):" in done.stdout
    assert f"log: {tmp_path}/runs/failed/measure/log.txt" in done.stdout
    assert "finished with status" not in done.stdout
    assert len([line for line in done.stdout.splitlines() if line.startswith("  | ")]) <= 20
    assert (tmp_path / "runs" / "failed" / "run.html").is_file()
    assert "failed: FAILED" in command("show", "failed").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "absent.json"], "absent.json does not exist; compile the pipeline first"),
        (["run", "pipeline.json", "--parameter", "nmae=x"], "no parameter 'nmae'; did you mean name?"),
        (["run", "pipeline.json", "--parameter", "times=two"], "parameter 'times' is 'two'; expected NUMBER_INTEGER"),
        (["run", "pipeline.json", "--parameter-file", "absent.yaml"], "absent.yaml cannot be read: no such file"),
        (["run", "pipeline.json", "--run-id", "../evil"], "--run-id '../evil'"),
        (["run", "pipeline.json", "--run-id", "models"], "--run-id 'models' is reserved for another folder"),
        (["run", "pipeline.json", "--max-parallel", "0"], "--max-parallel 0: expected at least 1"),
        (["run", "pipeline.json", "--grace", "-1"], "--grace -1.0: expected 0 or more seconds"),
        (["run", "pipeline.json", "--grace", "nan"], "--grace nan: expected 0 or more seconds"),
        (["run", "pipeline.json", "--region", "a/b"], "--region 'a/b'"),
        (["run", "pipeline.json", "--work-dir", "pipeline.json"], "the work folder"),
        (["show", "latest"], "no runs in 'runs'"),
        (["logs", "x"], "no runs in 'runs'"),
        (["clean", "../..", "--yes"], "no runs in 'runs'"),
    ],
)
def test_wrong_input_ends_with_2_and_one_line(
    compiled: Compile, command: Command, tmp_path: Path, words: list[str], message: str
) -> None:
    compiled(greeting)
    done = command(*words)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_runs_and_tasks_are_found_by_unique_parts_of_their_names(compiled: Compile, command: Command) -> None:
    compiled(greeting)
    for name in ("alpha-1", "alpha-2"):
        assert command("run", "pipeline.json", "--run-id", name).returncode == 0
    assert "2 runs match 'alpha'; choose one of: alpha-2, alpha-1" in command("show", "alpha").stderr
    assert "no runs match 'beta'" in command("show", "beta").stderr
    assert "the run has no task 'x'; tasks with a log: greet, measure" in command("logs", "alpha-1", "x").stderr
    assert "'e' matches several tasks; choose one of: greet, measure" in command("logs", "alpha-1", "e").stderr


def newly_imported(code: str) -> set[str]:
    """Return the top-level packages that a program imports, without those of every Python process."""
    program = f"import sys\nbefore = set(sys.modules)\n{code}\nprint('IMPORTED', *sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    modules = done.stdout.splitlines()[-1].split()[1:]
    return {*modules, *(name.partition(".")[0] for name in modules)}


def test_help_is_quick_because_it_imports_nothing_heavy() -> None:
    code = "from localvertex.__main__ import main\ntry:\n    main(['run', '--help'])\nexcept SystemExit:\n    pass"
    imported = newly_imported(code)
    assert "argparse" in imported
    assert {"kfp", "google", "tensorflow", "yaml", "rich", "jinja2", "cel", "localvertex.machines"}.isdisjoint(imported)


def test_a_run_imports_neither_kfp_nor_aiplatform_nor_tensorflow_in_its_own_process(compiled: Compile) -> None:
    file = compiled(greeting)
    code = f"import localvertex, pathlib\nfolder = pathlib.Path({str(file.parent)!r})\n"
    code += "localvertex.run(folder / 'pipeline.json', options=localvertex.Options(work_dir=folder / 'runs'))"
    imported = newly_imported(code)
    assert "html" in imported
    assert {"kfp", "google", "tensorflow"}.isdisjoint(imported)
