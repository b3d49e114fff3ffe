"""After Ctrl-C and after a failure, the printed command resumes the run, as it is, in a shell."""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from kfp import dsl

from localvertex.__main__ import _parser
from localvertex.commands import run
from localvertex.runner import repeated_options
from localvertex.show.terminal import resume_command
from vertex_testing.html import report_data
from vertex_testing.runs import STEP, Compile
from vertex_testing.terminal import Terminal

WORK_DIR = """the user's "runs" of $HOME é"""
FAULT = "SIGKILL workerpool0-0 at step 9"


@dsl.component(**STEP)
def prepare() -> int:
    return 1


@dsl.component(**STEP)
def wait_for_data(folder: str) -> None:
    import os
    import time

    if os.path.exists(f"{folder}/data"):
        return
    if not os.path.exists(f"{folder}/waits"):
        raise ValueError(f"no data in {folder}; put them there")
    print("waiting for data", flush=True)
    while True:
        time.sleep(0.1)


@dsl.pipeline(name="waits")
def waits(folder: str) -> None:
    first = prepare().set_caching_options(False)
    wait_for_data(folder=folder).after(first).set_caching_options(False)


@pytest.fixture
def words(compiled: Compile, tmp_path: Path) -> list[str]:
    """The command that runs it, with options that the resumed run needs again."""
    given = ["--parameter", f"folder={tmp_path}", "--run-id", "first", "--work-dir", WORK_DIR, "--fault", FAULT]
    options = ["--grace", "7", "--max-parallel", "1", "--no-cache"]
    return [sys.executable, "-m", "localvertex", "run", compiled(waits).name, *given, *options]


def paste(output: str, tmp_path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the printed command in a shell, in another folder."""
    (command,) = re.findall(r"^resume: (.*)$", output, re.MULTILINE)
    assert FAULT not in command
    given = shlex.split(command)
    assert {"--grace=7.0", "--max-parallel=1", "--no-cache"} <= set(given)
    assert not {"--parameter", "--run-id"} & set(given)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "data").touch()
    return subprocess.run(
        ["sh", "-c", command], cwd=tmp_path / "elsewhere", env=os.environ | variables, capture_output=True, text=True
    )


def assert_resumed(done: subprocess.CompletedProcess[str], tmp_path: Path) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"resuming run first in {tmp_path}/{WORK_DIR}/first"
    assert "prepare: SUCCEEDED before, not run again" in lines
    assert re.search(r"^prepare +SUCCEEDED +[\d.]+  before the run was resumed$", done.stdout, re.MULTILINE)
    assert re.search(r"^first: SUCCEEDED after [\d.]+ s in all, resumed once$", done.stdout, re.MULTILINE), done.stdout
    assert "resume: " not in done.stdout


def test_after_a_failure(words: list[str], tmp_path: Path) -> None:
    failed = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert failed.returncode == 1
    last = failed.stdout.splitlines()[-1]
    assert last.startswith("resume: ")
    shown = [*words[:3], "show", "first", "--work-dir", WORK_DIR]
    assert subprocess.run(shown, cwd=tmp_path, capture_output=True, text=True).stdout.splitlines()[-1] == last
    shown_in_report = report_data(tmp_path / WORK_DIR / "first" / "run.html")["resume"]
    assert last.partition(" -m ")[2] == shown_in_report.partition(" -m ")[2]
    assert_resumed(paste(failed.stdout, tmp_path), tmp_path)


@pytest.mark.parametrize(("number", "code", "name"), [(signal.SIGINT, 130, "Ctrl-C"), (signal.SIGTERM, 143, "SIGTERM")])
def test_after_ctrl_c_and_sigterm_in_a_terminal(
    words: list[str], tmp_path: Path, number: int, code: int, name: str
) -> None:
    (tmp_path / "waits").touch()
    terminal = Terminal(words, width=80, cwd=tmp_path)
    terminal.wait_for("  waiting for data$")
    terminal.process.send_signal(number)
    assert terminal.end() == code
    assert any(re.fullmatch(rf"first: CANCELLED after [\d.]+ s, stopped by {name}", line) for line in terminal.lines)
    assert f"fault {FAULT} did not happen: no custom job was started" in " ".join(terminal.text.split())
    assert_resumed(paste("\n".join(terminal.lines), tmp_path), tmp_path)


def test_the_command_names_the_python_or_the_script_that_the_shell_finds(words: list[str], tmp_path: Path) -> None:
    bin_folder = Path(sys.executable).parent
    on_path = os.environ | {"PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"}
    words[0] = "python"
    failed = subprocess.run(words, cwd=tmp_path, env=on_path, capture_output=True, text=True)
    assert "resume: python -m localvertex run --resume first --work-dir " in failed.stdout
    assert_resumed(paste(failed.stdout, tmp_path, PATH=on_path["PATH"]), tmp_path)


def test_every_option_that_is_not_a_default_is_repeated_but_what_the_run_keeps_is_not(tmp_path: Path) -> None:
    fixed = ["file.json", "-p", "a=1", "--parameter-file", "f", "--input-artifact", "a=b", "--project", "p"]
    fixed += ["--region", "r", "--run-id", "i", "--fault", FAULT]
    kept = ["--fail-fast", "--image=a:1=docker run --rm a:1", "--engine=docker", "--allow-network", "--max-backoff=1.5"]
    kept += [f"--gcs-root={tmp_path}", "--with-credentials", "--image=b=-x '$y'"]
    options = _parser().parse_args(["run", *fixed, *kept, "--work-dir", "somewhere"])
    again = repeated_options.words(run.run_options(options))
    content = {"run_id": "i", "work_dir": "/the work", "parameters": {"a": 1}, "resume_options": again}
    text = resume_command.sentence(content)
    words = shlex.split(text.removeprefix("resume: "))
    assert words[words.index("run") :] == ["run", "--resume", "i", "--work-dir", "/the work", *again]
    assert sorted(again) == sorted(kept)


def test_a_run_with_a_secret_cannot_be_resumed_and_says_so(compiled: Compile, tmp_path: Path) -> None:
    @dsl.component(**STEP)
    def log_in(variables: list) -> None:
        raise ValueError("wrong password")

    @dsl.pipeline(name="secret")
    def secret(variables: list) -> None:
        log_in(variables=variables)

    variables = 'variables=[{"name": "DB_PASSWORD", "value": "planted-password"}]'
    words = [sys.executable, "-m", "localvertex", "run", compiled(secret).name, "-p", variables]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    last = done.stdout.splitlines()[-1]
    assert last == "cannot be resumed, because a secret in its parameters is not stored; run the file again"
