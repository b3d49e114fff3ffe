"""`localvertex init` in a repository with several pipelines: all that reads localvertex.toml runs each of them."""

import ast
import json
import re
import tomllib
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.v1.bigquery import BigqueryQueryJobOp
from kfp import dsl
from localvertex_tests.commands.conftest import Session

from vertex_testing.runs import STEP, Command, Compile
from vertex_testing.server import Server, wait_until


@dsl.component(**STEP)
def length(text: str) -> int:
    return len(text)


@dsl.component(**STEP)
def rows(table: dsl.Input[dsl.Artifact]) -> int:
    return len(open(table.path).read().splitlines())


def query() -> Any:
    return BigqueryQueryJobOp(project="p", location="EU", query="SELECT 1")


@dsl.pipeline(name="one")
def one() -> None:
    length(text=query().outputs["gcp_resources"])


@dsl.pipeline(name="two")
def two() -> None:
    rows(table=query().outputs["destination_table"])


@dsl.pipeline(name="two")
def second_two() -> None:
    length(text="x").after(query().set_display_name("only here"), query())


GIVEN = """
def test_what_a_test_gives_is_more_than_the_file(run_pipeline):
    resources = {"gcp_resources": "12345", "destination_table": {"metadata": {"tableId": "t"}}}
    run = run_pipeline("a.json", given={"bigquery-query-job": resources})
    assert run.outputs["length"]["Output"] == 5
"""

SOURCE = """
from kfp import dsl

@dsl.pipeline(name="same")
def first(): ...

@dsl.pipeline(name="same")
def second(): ...
"""


@pytest.mark.slow
def test_every_reader_runs_each_pipeline_with_the_tables_that_are_its_own(
    command: Command,
    compiled: Compile,
    repository: Path,
    session: Session,
    start_server: Callable[..., AbstractContextManager[Server]],
) -> None:
    files = [compiled(each, f"repository/{name}.json") for each, name in ((one, "a"), (two, "b"), (second_two, "c"))]
    assert command("init", "repository").returncode == 0
    config, written = repository / "localvertex.toml", (repository / "localvertex.toml").read_text()
    filled = re.sub(r"^# (?=\[|outputs)", "", written, flags=re.MULTILINE).replace("path/to/file", "file.csv")
    (repository / "file.csv").write_text("a\n1\n2\n")
    config.write_text(filled)
    assert {name: {*table["step"]} for name, table in tomllib.loads(filled)["pipeline"].items()} == {
        "one": {"bigquery-query-job"},
        "two": {"bigquery-query-job", "bigquery-query-job-2"},
    }
    for file in files:
        done = command("run", file, "--config", config)
        assert done.returncode == 0, done.stdout + done.stderr
        assert ": GIVEN, not run" in done.stdout
    test = repository / "tests" / "test_pipelines_locally.py"
    names = [each.name for each in ast.parse(test.read_text()).body if isinstance(each, ast.FunctionDef)]
    assert names == ["test_one", "test_b_json", "test_c_json"]
    (repository / "tests" / "test_given.py").write_text(GIVEN)
    done = session("-q", "-W", "ignore", "tests")
    assert "4 passed" in done.stdout, done.stdout + done.stderr
    with start_server("--config", str(config)) as server:
        for file in files[:2]:
            answer = server.call("POST", "pipelineJobs", {"pipelineSpec": json.loads(file.read_text())}).json()
            name = answer["name"].rpartition("/")[2]
            job = wait_until(
                lambda name=name: (each := server.call("GET", f"pipelineJobs/{name}").json()).get("endTime") and each
            )
            assert job["state"] == "PIPELINE_STATE_SUCCEEDED"


def test_two_functions_of_one_name_are_compiled_to_two_files(command: Command, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(SOURCE)
    printed = command("init").stdout
    outputs = re.findall(r"--output (\S+)", printed)
    assert len({*outputs}) == len(outputs) == 2, printed


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ("[pipeline.other.step.x]\noutputs = {}\n", 0),
        ("[pipeline.words.step.x]\noutputs = {}\n", 0),
        ("[pipeline.words.step.lenght]\noutputs = {}\n", 2),
        ("[pipeline.words.step.length]\noutputs = {Output = 3}\n", 0),
        ("[pipeline.words.steps.length]\noutputs = {Output = 3}\n", 2),
        ("[parameters]\nother = 3\n", 2),
        ("[pipeline.words.parameters]\nother = 3\n", 0),
        ("[pipeline.words.parameters]\ntxt = 'x'\n", 2),
    ],
)
def test_tables_of_a_pipeline(command: Command, compiled: Compile, tmp_path: Path, table: str, code: int) -> None:
    """Another pipeline's are not read; a name that only this pipeline nearly has is a mistake."""

    @dsl.pipeline(name="words")
    def words(text: str) -> None:
        length(text=text)

    (tmp_path / "localvertex.toml").write_text(table)
    done = command("run", compiled(words), "--parameter", "text=x")
    assert done.returncode == code, done.stdout + done.stderr


def test_a_value_comes_from_the_file_where_the_run_gives_none(
    command: Command, compiled: Compile, tmp_path: Path
) -> None:
    @dsl.pipeline(name="words")
    def words(text: str, more: str = "default") -> int:
        length(text=more)
        return length(text=text).output

    (tmp_path / "localvertex.toml").write_text(
        "[parameters]\ntext = 'ab'\nmore = 'abc'\n[pipeline.words.parameters]\ntext = 'abcd'\n"
    )
    file = compiled(words)
    assert command("run", file, "--run-id", "toml").returncode == 0
    assert command("run", file, "--run-id", "given", "-p", "text=x").returncode == 0
    records = [json.loads((tmp_path / "runs" / each / "run.json").read_text()) for each in ("toml", "given")]
    found = [each["parameters"] for each in records]
    assert found == [{"text": "abcd", "more": "abc"}, {"text": "x", "more": "abc"}]
