"""`localvertex init` in repositories of any kind: it runs nothing, overwrites nothing, and judges what it finds."""

import ast
import json
import os
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from kfp import dsl

from localvertex.init import search
from localvertex.init.search import source_rows
from vertex_testing.runs import STEP, Command, Compile

TEST = Path("tests", "test_pipelines_locally.py")

SOURCE = """
import kfp
import kfp.dsl as k
from kfp import dsl
from kfp.v2 import dsl as old
from kfp.v2.dsl import pipeline
from google_cloud_pipeline_components.v1.dataset import TabularDatasetCreateOp as CreateOp

open("imported", "w")


@dsl.component
def train(): ...


@dsl.pipeline(name="first-one")
def one(rate: float):
    train()
    CreateOp(project="p")
    print(rate)


@k.pipeline
def two_of(): ...


@pipeline("third")
def three(): ...


@old.pipeline(name=NAME)
def four(): ...


def build():
    @kfp.dsl.pipeline(name="fifth")
    def five(): ...
"""


@dsl.component(**STEP)
def nothing(text: str = "") -> str:
    return text


@dsl.pipeline(name="plain")
def plain(text: str, number: int = 1) -> None:
    nothing(text=text)


def pool(machine: str, command: list[str]) -> dict[str, Any]:
    container = {"image_uri": "europe-docker.pkg.dev/p/r/train:1", "command": command}
    return {"machine_spec": {"machine_type": machine}, "replica_count": 1, "container_spec": container}


@dsl.pipeline(name="Train it")
def job(text: str = "") -> None:
    from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp

    pools = [pool("n1-standard-4", ["python", "-c", "pass"])]
    CustomTrainingJobOp(display_name="train", worker_pool_specs=pools)


@dsl.pipeline(name="no-such-machine")
def no_such_machine() -> None:
    from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp

    CustomTrainingJobOp(display_name="train", worker_pool_specs=[pool("n1-standard-5", ["python", "-c", "pass"])])


@dsl.pipeline(name="query")
def query(source: str = "gs://bucket/x") -> None:
    from google_cloud_pipeline_components.v1.bigquery import BigqueryQueryJobOp

    BigqueryQueryJobOp(project="p", location="EU", query="SELECT 1")
    nothing(text=source)


@dsl.component(**STEP)
def rows(table: str = "p.d.t") -> int:
    from google.cloud import bigquery

    return len([*bigquery.Client().list_rows(table)])


@dsl.pipeline(name="warehouse")
def warehouse() -> None:
    rows()


def content(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


def test_nothing_of_the_repository_is_imported_or_run(tmp_path: Path, compiled: Compile) -> None:
    bad = "import os; open(os.environ['SEEN'], 'a').write(__file__)\n"
    for name in ("kfp", "yaml", "ast", "conftest", "sitecustomize", "setup", "google", "starlette", "pipeline"):
        (tmp_path / f"{name}.py").write_text(f"from kfp import dsl\n{bad}\n@dsl.pipeline(name='x')\ndef x(): ...\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    compiled(plain)
    command = [sys.executable, "-m", "localvertex", "init"]
    variables = os.environ | {"SEEN": str(tmp_path / "seen")}
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (tmp_path / "seen").exists()
    assert done.stdout.count("to be compiled") == 9


def test_nothing_is_overwritten(command: Command, compiled: Compile, tmp_path: Path) -> None:
    compiled(plain)
    (tmp_path / "outside").mkdir()
    (tmp_path / "repository").mkdir()
    (tmp_path / "pipeline.json").rename(tmp_path / "repository" / "plain.json")
    toml = tmp_path / "repository" / "localvertex.toml"
    toml.write_text("mine")
    # A link to a file that does not exist is not followed either.
    (tmp_path / "repository" / "tests").mkdir()
    (tmp_path / "repository" / TEST).symlink_to(tmp_path / "outside" / "made.py")
    done = command("init", "repository")
    assert done.returncode == 1
    assert toml.read_text() == "mine"
    assert list((tmp_path / "outside").iterdir()) == []
    assert "localvertex.toml exists and was not changed; it would contain:\n    # What" in done.stdout
    assert f"{TEST} exists and was not changed" in done.stdout
    assert "        ROOT / 'plain.json'," in done.stdout


def test_a_second_call_changes_nothing(command: Command, compiled: Compile, tmp_path: Path) -> None:
    compiled(plain)
    assert command("init").returncode == 0
    before = content(tmp_path)
    assert command("init").returncode == 1
    assert content(tmp_path) == before


def test_the_verdicts(command: Command, compiled: Compile, tmp_path: Path) -> None:
    compiled(plain, "a.yaml")
    compiled(job, "b.json")
    compiled(no_such_machine, "c.json")
    compiled(query, "d.yaml")
    broken = yaml.safe_load(compiled(plain, "e.yaml").read_text())
    broken["root"]["unknownField"] = 1
    (tmp_path / "e.yaml").write_text(yaml.safe_dump(broken))
    (tmp_path / "f.json").write_text('{"pipelineSpec": ')
    compiled(warehouse, "g.yaml")
    (tmp_path / "schema.json").write_text('{"properties": {"pipelineSpec": {}}}')
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "p.py").write_text("import kfp\n@kfp.dsl.pipeline(name='other')\ndef f(): ...\n")
    # It is compiled already.
    (tmp_path / "src" / "q.py").write_text("import kfp\n@kfp.dsl.pipeline(name='plain')\ndef f(): ...\n")
    done = command("init")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line for line in done.stdout.splitlines() if not line.startswith((" ", "wrote"))]
    assert [line.split(maxsplit=1) for line in rows] == [
        ["a.yaml", "runs here"],
        ["b.json", "runs here"],
        ["c.json", "refused by Vertex AI"],
        ["d.yaml", "needs stand-ins"],
        ["e.yaml", "cannot run here"],
        ["f.json", "cannot run here"],
        ["g.yaml", "needs stand-ins"],
        ["src/p.py:3", "to be compiled"],
    ]
    assert "  [step.bigquery-query-job], [buckets]\n" in done.stdout
    assert "  [step.rows]\n  rows: calls BigQuery: name files with the rows of its queries and tables\n" in done.stdout
    assert "  kfp dsl compile --py src/p.py --function f --output other.yaml\n" in done.stdout
    assert [line for line in done.stdout.splitlines() if len(line) > 80] == []
    written = (tmp_path / "localvertex.toml").read_text()
    assert tomllib.loads(written) == {}
    filled_in = tomllib.loads("\n".join(line.removeprefix("# ") for line in written.splitlines()[3:]))
    steps = {name: table["step"] for name, table in filled_in["pipeline"].items()}
    assert steps["query"]["bigquery-query-job"]["outputs"] == {"destination_table": "path/to/file"}
    assert steps["warehouse"]["rows"]["bigquery"] == {"p.d.t": "path/to/file"}
    assert filled_in["buckets"] == {"root": "buckets", "create": True}


def test_the_test_has_an_interruption_where_there_is_a_custom_job(
    command: Command, compiled: Compile, tmp_path: Path
) -> None:
    compiled(plain, "a.yaml")
    compiled(job, "b.json")
    (tmp_path / "pkg" / "tests").mkdir(parents=True)
    (tmp_path / "pkg" / "tests" / "test_a.py").write_text("")
    assert command("init").returncode == 0
    text = (tmp_path / "pkg" / "tests" / TEST.name).read_text()
    ast.parse(text)
    assert "parents[2]" in text
    assert "def test_train_it(run_pipeline):" in text
    assert 'faults=["SIGKILL workerpool0-0 at 3s"],' in text
    assert "run.tasks['custom-training-job'][\"custom_job\"]" in text


def test_a_parameter_without_a_default_is_to_be_filled_in(command: Command, compiled: Compile, tmp_path: Path) -> None:
    compiled(plain)
    done = command("init")
    assert "  parameters without a default: text\n" in done.stdout
    text = (tmp_path / TEST).read_text()
    assert "'text': 'text',  # fill in" in text
    assert "faults" not in text


def test_sources_are_read_as_text() -> None:
    found = source_rows(Path("p.py"), SOURCE.encode())
    assert [(int(each.path[5:]), each.name, each.command.partition(" ")[0]) for each in found] == [
        (17, "first-one", "dsl-compile-v2"),
        (24, "two-of", "dsl-compile-v2"),
        (28, "third", "dsl-compile-v2"),
        (32, "four", "dsl-compile-v2"),
        (37, "fifth", ""),
    ]
    assert found[0].details == ["uses train, CreateOp"]
    assert found[4].details == ["run the code that compiles it: kfp's command cannot find it"]


@pytest.mark.parametrize(
    "data",
    [b"def f(:", b"\x00", b"\xff\xfe", b"(" * 100_000, b"-" * 100_000 + b"1", b"a" + b".b" * 50_000, b"x = '\\d'"],
    ids=["broken", "null", "not text", "brackets", "signs", "attributes", "escape"],
)
def test_broken_sources_have_no_pipelines(data: bytes) -> None:
    assert source_rows(Path("p.py"), b"from kfp import dsl\n" + data) == []


def test_a_hostile_repository(command: Command, compiled: Compile, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    compiled(plain, "outside/secret.yaml")
    root = tmp_path / "repository"
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "up").symlink_to(root)
    (root / "a" / "b" / "again").symlink_to(root / "a" / "b" / "again")
    (root / "out").symlink_to(outside)
    (root / "out.yaml").symlink_to(outside / "secret.yaml")
    (root / "tests").symlink_to(outside)
    os.mkfifo(root / "pipe.json")
    with (root / "huge.json").open("wb") as file:
        file.truncate(2**40)
    (root / "bad.py").write_bytes(b"kfp pipeline \x00\xff(")
    evil = '\x1b[31mevil\n"""\nimport os\x07'
    text = compiled(plain, "x.json").read_text()
    spec = json.loads(text)
    spec["pipelineInfo"]["name"] = evil
    (root / f"{evil}.json").write_text(json.dumps(spec))
    (root / os.fsdecode(b"\xff\xfe.json")).write_text(text)
    (root / f"{evil}.py").write_text("import kfp\n@kfp.dsl.pipeline(name='\\x1b[31m')\ndef f(): ...\n")
    for name in (".git", "node_modules", ".hidden", "runs/one", "environment"):
        (root / name).mkdir(parents=True)
        (root / name / "p.json").write_text(text)
    (root / "environment" / "pyvenv.cfg").touch()
    (root / "runs" / ".localvertex").mkdir()
    done = command("init", "repository")
    assert done.returncode == 0, done.stdout + done.stderr
    assert [each for each in done.stdout if not each.isprintable() and each != "\n"] == []
    assert "secret" not in done.stdout
    assert done.stdout.count("runs here") == 2
    assert "kfp's command cannot find it" in done.stdout
    assert [each.name for each in outside.iterdir()] == ["secret.yaml"]
    written = (root / TEST.name).read_text(errors="surrogateescape")
    types = [type(each) for each in ast.parse(written).body]
    assert types == [ast.Expr, ast.ImportFrom, ast.Assign, ast.FunctionDef, ast.FunctionDef]


def test_the_search_ends_at_its_limits(
    command: Command, compiled: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled(plain)
    for number in range(50):
        (tmp_path / f"z{number}.txt").touch()
    monkeypatch.setattr(search, "_MAX_FILES", 20)
    done = command("init")
    assert "stopped after 20 files" in done.stdout
    assert "runs here" in done.stdout


@pytest.mark.parametrize("folder", ["missing", "file", ""])
def test_a_folder_that_is_none_is_refused(command: Command, tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").touch()
    done = command("init", folder)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_nothing_is_written_where_there_is_no_compiled_pipeline(command: Command, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(SOURCE)
    done = command("init")
    assert done.returncode == 1
    assert "compile one and run init again. Nothing was written." in done.stdout
    assert "dsl-compile-v2 --py p.py --function three --output third.json" in done.stdout
    assert [each.name for each in tmp_path.iterdir()] == ["p.py"]


@pytest.mark.slow
@pytest.mark.soak
def test_many_files(command: Command, compiled: Compile, tmp_path: Path) -> None:
    compiled(plain)
    for folder in range(100):
        (tmp_path / f"f{folder}").mkdir()
        for number in range(1000):
            (tmp_path / f"f{folder}" / f"{number}.{('py', 'json', 'yaml', 'txt')[number % 4]}").write_text("kfp")
    began = time.monotonic()
    done = command("init")
    assert "runs here" in done.stdout
    print(f"{time.monotonic() - began:.1f} s")
