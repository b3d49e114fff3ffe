"""Which commands of an image are known to be missing before they start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import localvertex
from localvertex.containers.programs import missing, with_bash

in_place = pytest.mark.skipif(
    not Path(localvertex.__file__).is_relative_to(Path(__file__).resolve().parents[3]),
    reason="localvertex is not installed in place",
)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["no-such-program"], "the program 'no-such-program'"),
        (["./run.sh"], "the program './run.sh'"),
        (["sh", "run.sh"], "the script 'run.sh'"),
        (["bash", "-eux", "/app/run.sh", "x"], "the script '/app/run.sh'"),
        (["/bin/sh", "-c", "/app/run.sh --fast"], "the program '/app/run.sh'"),
        (["sh", "-c", "exec python3 /main.py"], "the script '/main.py'"),
        (["bash", "-lc", "A=b python -m app.main"], "the Python module 'app.main'"),
        (["python3", "/main.py"], "the script '/main.py'"),
        (["python", "main.py"], "the script 'main.py'"),
        (["python", "-u", "-W", "ignore", "main.py"], "the script 'main.py'"),
        (["python", "-m", "no_such_module"], "the Python module 'no_such_module'"),
        (["python3", "-um", "json.no_such_module"], "the Python module 'json.no_such_module'"),
        (["env", "A=b", "python3", "/main.py"], "the script '/main.py'"),
        (["/usr/bin/env", "sh", "/run.sh"], "the script '/run.sh'"),
        ([sys.executable, "/main.py"], "the script '/main.py'"),
    ],
)
def test_what_is_only_in_an_image_is_named(words: list[str], expected: str) -> None:
    assert missing(words, os.path.exists, {}).startswith(expected)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["true"],
        ["sh", "-c", "for i in 1 2; do /not/checked; done"],
        ["sh", "-c", "cd /tmp"],
        ["sh", "-ec", "echo $0", "x"],
        ["sh"],
        ["python3", "-c", "import x"],
        ["python3", "-m", "json.tool"],
        ["python", "-m", "kfp.dsl.executor_main"],
        ["python", "-m", "pip", "install", "x"],
        ["pip3", "install", "x"],
        ["python3", "-"],
        ["python3", "--version"],
        ["python3", __file__],
        ["sh", __file__],
        ["python3", "{{$.inputs.parameters['script']}}"],
        ["{{$.inputs.parameters['program']}}", "x"],
    ],
)
def test_what_may_run_is_not_refused(words: list[str]) -> None:
    assert missing(words, os.path.exists, {}) == ""


def test_a_module_of_a_path_that_the_container_sets_may_be_there() -> None:
    assert missing(["python", "-m", "app"], os.path.exists, {"PYTHONPATH": "/app"}) == ""


def test_no_package_is_imported_to_find_its_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loud").mkdir()
    (tmp_path / "loud" / "__init__.py").write_text("raise SystemExit('imported')")
    (tmp_path / "loud" / "main.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert missing(["python", "-m", "loud.main"], os.path.exists, {}) == ""
    assert missing(["python", "-m", "loud.other"], os.path.exists, {}) != ""


def test_a_module_is_found_in_folders_without_init_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plain" / "inner").mkdir(parents=True)
    (tmp_path / "plain" / "inner" / "main.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert missing(["python", "-m", "plain.inner.main"], os.path.exists, {}) == ""
    assert missing(["python", "-m", "plain.inner.other"], os.path.exists, {}) != ""


@pytest.mark.parametrize(
    "script",
    [
        "set -euo pipefail; false | true; echo never",
        "if [[ -n x ]]; then echo a; fi",
        'x=abc; echo "${x:0:1}"',
        "source /dev/null",
        "a=(1 2); echo",
        "echo -e 'a\\tb'",
    ],
)
@pytest.mark.skipif(not Path("/bin/bash").exists(), reason="bash is not installed")
def test_a_script_of_a_shell_like_bash_gets_one(script: str) -> None:
    run = {"capture_output": True, "text": True}
    wanted = subprocess.run(["bash", "-c", script], **run)
    words = with_bash(["sh", "-c", script])
    done = subprocess.run(words, **run)
    assert (done.returncode, done.stdout) == (wanted.returncode, wanted.stdout)


def test_any_other_script_keeps_its_shell() -> None:
    for words in (["sh", "-ec", 'mkdir -p "$(dirname "$1")"; test -n "$x" && echo ${x%.*}'], ["bash", "-c", "[[ a ]]"]):
        assert with_bash(words) == words


@in_place
def test_a_project_that_is_installed_in_place_is_found_from_its_own_folder(package: Path) -> None:
    """`pip install -e` names the folder in a .pth file; only the current folder itself does not count."""
    code = "from localvertex.containers.interpreter import search_path; print(search_path())"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=package, env=environment, capture_output=True, text=True, check=True
    )
    assert repr(str(package)) in done.stdout


@in_place
def test_a_sandbox_sees_the_packages_of_such_a_project_and_none_of_its_other_files(package: Path) -> None:
    code = "from localvertex.containers.interpreter import folders; print(*folders(), sep='\\n')"
    done = subprocess.run([sys.executable, "-c", code], cwd=package, capture_output=True, text=True, check=True)
    seen = {Path(line) for line in done.stdout.splitlines()}
    inside = {path for path in seen if path.is_relative_to(package)}
    assert {package / "localvertex"} <= inside
    assert not {package, package / ".git", package / "runs", package / "docs"} & inside
