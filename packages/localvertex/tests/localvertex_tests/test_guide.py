"""The commands and programs of docs/localvertex.md work as described."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from localvertex.credentials import step_python
from localvertex.store import registry
from vertex_testing.own_endpoint import reachable
from vertex_testing.runs import Compile, Execute


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_guide_works_from_top_to_bottom(package: Path, tmp_path: Path) -> None:
    guide = (package / "docs" / "localvertex.md").read_text()
    hello, _, from_python = blocks(guide, "python")
    (tmp_path / "hello.py").write_text(hello)
    (tmp_path / "from_python.py").write_text(from_python)
    (commands,) = blocks(guide, "sh")
    output = {}
    for line in [*commands.splitlines(), "python from_python.py"]:
        program, *words = shlex.split(line)
        assert program == "python"
        done = subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=os.environ | {"COLUMNS": "160"}, capture_output=True, text=True
        )
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        output[line] = done.stdout
    assert "length = 9" in output["python -m localvertex show latest"]
    assert "greeting you" in output["python -m localvertex logs second greet"]
    assert "second" in output["python -m localvertex list"]
    assert not (tmp_path / "runs" / "second").exists()


@pytest.mark.slow
def test_the_program_of_a_step_lists_the_models(package: Path, tmp_path: Path) -> None:
    _, in_step, _ = blocks((package / "docs" / "localvertex.md").read_text(), "python")
    registry.add(tmp_path, {"display_name": "pets"})
    with reachable(tmp_path):
        env = os.environ | {"PYTHONPATH": str(Path(step_python.__file__).parent)}
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", in_step], env=env, capture_output=True, text=True)
    assert done.stdout == "['pets']\n", done.stderr


def test_the_guide_names_every_field_of_the_record(package: Path, compiled: Compile, execute: Execute) -> None:
    from kfp import dsl

    @dsl.component(base_image="python:3.11", install_kfp_package=False)
    def nothing() -> None:
        pass

    @dsl.pipeline(name="nothing")
    def pipeline() -> None:
        nothing()

    guide = (package / "docs" / "localvertex.md").read_text()
    record = execute(pipeline)
    documented = set(re.findall(r"`(\w+)`", guide.partition("## run.json")[2]))
    assert set(record) <= documented
    assert set(record["tasks"][0]) <= documented
