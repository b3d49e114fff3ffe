"""The README's commands are real."""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator

import pytest
from PIL import Image

from tests.e2e.conftest import Run
from vertex_testing.server import Server

pytestmark = pytest.mark.slow

DIGEST = "sha256:" + "b" * 64


def blocks(page: pathlib.Path) -> list[list[str]]:
    """Return the lines of each fenced block that starts with a prompt."""
    found = re.findall(r"^```[a-z]*\n(\$ .*?)^```$", page.read_text(), flags=re.M | re.S)
    return [block.splitlines() for block in found]


@pytest.fixture
def desk(repository: pathlib.Path, python: str, tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder as the README's reader has it, with the pipeline compiled for an image of a registry."""
    image = f"us-docker.pkg.dev/p/r/n@{DIGEST}"
    compile_it = [python, repository / "compile.py", "--image", image, "--output-dir", tmp_path / "build"]
    subprocess.run(compile_it, check=True, capture_output=True)
    shutil.copy(repository / "schedules.yaml", tmp_path)
    Image.new("RGB", (40, 30), "white").save(tmp_path / "image.png")
    return tmp_path


@pytest.fixture
def server(server: Server) -> Iterator[Server]:
    """The service that the schedule command calls, in place of Google's."""
    with server.without_schedules():
        yield server


def test_every_other_command_of_the_readme_runs(
    repository: pathlib.Path,
    python: str,
    demo: Run,
    desk: pathlib.Path,
    digits_source: pathlib.Path,
    server: Server,
) -> None:
    known = {"MODEL_DIR": demo.artifact("export", "model")["uri"], "IMAGE": "image.png"}
    known["cloud.py"] = str(repository / "cloud.py")
    added = {
        "localvertex": [
            *("--parameter", "max_steps=5"),
            *("--parameter", "max_examples=200"),
            *("--parameter", f"source={digits_source}"),
        ],
        "schedule": [*server.endpoint],
    }
    lines = [line for block in blocks(repository / "README.md") for line in block if line.startswith("$ ")]
    lines = [line for line in lines if not line.startswith("$ make")]  # the tests of the demo and the console run these
    for line in lines:
        first, *words = shlex.split(line.removeprefix("$ "))
        assert first == ".venv/bin/python", line
        words = [known.get(word, word) for word in words]
        words += [more for name, options in added.items() if name in words for more in options]
        variables = os.environ | {"PYTHONPATH": str(repository)}
        done = subprocess.run([python, *words], cwd=desk, env=variables, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    assert len(lines) == 6
    # A few steps do not reach minimum_score: evaluated, neither exported nor registered.
    runs = [json.loads(path.read_text()) for path in (desk / "runs").glob("*/run.json")]
    assert [run["state"] for run in runs] == ["SUCCEEDED"] * 2
    assert [task["name"] for run in runs for task in run["tasks"] if task["state"] == "SUCCEEDED"].count(
        "evaluate"
    ) == 2
    assert not [*(desk / "runs" / "models").glob("*")]
