"""The page "Your own repository" works from top to bottom, and shows what is really printed."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from localvertex_tests.commands.conftest import Session


@pytest.mark.slow
@pytest.mark.parametrize("is_run", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_the_page_works_from_top_to_bottom(package: Path, repository: Path, session: Session, is_run: bool) -> None:
    text = (package / "docs" / "your-own-repository.md").read_text()
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert [kind for kind, _ in blocks] == ["sh", "python", "console", "toml", "console", "console", "python"]
    install, pipeline, find, filled_in, run, test, submission = (content for _, content in blocks)
    assert (package / "pyproject.toml").is_file()
    program, verb, localvertex, *others = shlex.split(install)
    assert (program, verb, localvertex) == ("pip", "install", "path/to/localvertex[serve]")
    # All that the page's files import, in one command.
    imported = {each.partition(".")[0] for each in re.findall(r"^(?:from|import) ([\w.]+)", pipeline, re.MULTILINE)}
    assert imported - {"kfp", *sys.stdlib_module_names} <= {each.replace("-", "_") for each in others}
    (repository / "taxi.py").write_text(pipeline)
    (repository / "pytest.ini").unlink()
    printed = ""
    for line in [each for each in find.splitlines() if each.startswith("$ ")]:
        done = shell(line, repository)
        is_listed_only = "taxi.yaml" not in printed and "init" in line
        assert done.returncode == is_listed_only, done.stdout + done.stderr
        printed += f"{line}\n{done.stdout if 'init' in line else ''}"
    assert printed == find
    written = (repository / "localvertex.toml").read_text()
    for line in filled_in.splitlines():
        assert line.replace("trips.csv", "path/to/file") in written.replace("# ", "")
    (repository / "localvertex.toml").write_text(filled_in)
    (repository / "trips.csv").write_text("trip,fare\n1,5\n")
    if not is_run:
        return
    (line,) = run.splitlines()
    done = shell(line, repository)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "bigquery-query-job: GIVEN" in done.stdout
    made = repository / "tests" / "test_pipelines_locally.py"
    (repository / "tests" / "test_submission.py").write_text(submission)
    program, *words = shlex.split(test.removeprefix("$ "))
    assert (program, words[:2], repository / words[2]) == ("python", ["-m", "pytest"], made)
    # With the page's last program in the same session, whose start takes seconds.
    done = session("-q", "-W", "ignore", words[2], "tests/test_submission.py")
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def shell(line: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run a line of the page with the programs of this environment."""
    program, *words = shlex.split(line.removeprefix("$ "))
    path = sys.executable if program == "python" else shutil.which(program, path=str(Path(sys.executable).parent))
    assert path, program
    environment = os.environ | {"COLUMNS": "80"}
    return subprocess.run([path, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
