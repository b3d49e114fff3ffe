"""[buckets] of localvertex.toml: folders that are created, and files in place of gs:// addresses."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl

import localvertex
from localvertex._base.userinput.errors import UserError
from localvertex.errors import TaskFailed
from localvertex.runner.engine import check
from localvertex.runner.options import Options
from localvertex.store import removal
from localvertex.store.copies import Copies
from localvertex.values import configuration
from localvertex.values.buckets import Buckets, OutsideBucket
from vertex_testing.runs import STEP, Compile, Execute, FindTask


@dsl.component(**STEP)
def read(data: dsl.Input[dsl.Dataset], table: str, out: str) -> str:
    from pathlib import Path

    Path(out).mkdir(parents=True)
    return Path(data.path).read_text() + Path(table).read_text()


@dsl.pipeline
def pipeline(table: str = "gs://public/tables/a.csv", out: str = "gs://mine/out") -> None:
    data = dsl.importer(artifact_uri="gs://public/iris.csv", artifact_class=dsl.Dataset).output
    read(data=data, table=table, out=out)


@dsl.component(**STEP)
def spoil(data: dsl.Input[dsl.Dataset]) -> str:
    text = open(data.path).read()
    open(data.path, "w").write("spoiled")
    return text


@dsl.component(**STEP)
def spoil_folder(table: str) -> str:
    import os

    text = open(table).read()
    os.chmod(table, 0o600)
    open(table, "w").write("spoiled")
    open(os.path.dirname(table) + "/new", "w").close()
    return text


@dsl.pipeline
def spoiling(table: str = "gs://public/tables/a.csv") -> None:
    spoil(data=dsl.importer(artifact_uri="gs://public/iris.csv", artifact_class=dsl.Dataset).output)
    spoil_folder(table=table)


def configured(folder: Path, text: str) -> configuration.Configuration:
    (folder / "localvertex.toml").write_text(text)
    return configuration.read(folder / "localvertex.toml")


@pytest.mark.slow
def test_what_is_proposed_lets_the_pipeline_run(
    compiled: Compile, execute: Execute, task: FindTask, tmp_path: Path, work_dir: Path
) -> None:
    file = compiled(pipeline)
    with pytest.raises(localvertex.Refused) as raised:
        check(file, options=Options(work_dir=work_dir))
    proposal = raised.value.proposal
    assert tomllib.loads(proposal)["buckets"] == {
        "root": "buckets",
        "create": True,
        "files": {"gs://public/iris.csv": "path/to/file"},
    }
    (tmp_path / "iris.csv").write_text("iris ")
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "a.csv").write_text("table")
    lines = proposal.replace("path/to/file", "iris.csv") + '\n"gs://public/tables" = "tables"\n'
    record = execute(pipeline, configuration=configured(tmp_path, lines))
    assert record["state"] == "SUCCEEDED", record["error"]
    assert task(record, "read")["outputs"]["parameters"]["Output"] == "iris table"
    assert (tmp_path / "buckets" / "mine" / "out").is_dir()
    assert not (tmp_path / "buckets" / "public").exists()


def test_a_refused_run_creates_no_folder(compiled: Compile, tmp_path: Path, work_dir: Path) -> None:
    file, lines = compiled(pipeline), '[buckets]\nroot = "buckets"\ncreate = true\n'
    wrong = {"table": "gs://No_Bucket/x"}
    with pytest.raises(localvertex.Refused, match="is not the name of a bucket"):
        localvertex.run(
            file, parameters=wrong, options=Options(work_dir=work_dir, configuration=configured(tmp_path, lines))
        )
    gone = lines + '[buckets.files]\n"gs://public/iris.csv" = "gone.csv"\n'
    with pytest.raises(
        localvertex.Refused, match=r"no file or folder '.*gone.csv', which is given for gs://public/iris"
    ):
        localvertex.run(file, options=Options(work_dir=work_dir, configuration=configured(tmp_path, gone)))
    with pytest.raises(UserError, match=r"expected an existing folder.*--create-buckets"):
        Options(work_dir=work_dir, configuration=configured(tmp_path, '[buckets]\nroot = "buckets"\n'))
    assert sorted(each.name for each in tmp_path.iterdir() if each.name in ("buckets", work_dir.name)) == []


def test_nothing_is_written_where_the_user_gives_files(execute: Execute, tmp_path: Path) -> None:
    @dsl.pipeline
    def job() -> None:
        container = {"image_uri": "any", "command": ["python3", "-c", "raise SystemExit(1)"]}
        pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}
        CustomTrainingJobOp(display_name="j", worker_pool_specs=[pool], base_output_directory="gs://data/base")

    (tmp_path / "mine" / "base").mkdir(parents=True)
    lines = '[buckets.files]\n"gs://data" = "mine"\n'
    record = execute(job, configuration=configured(tmp_path, lines))
    assert "which is only read" in record["error"]
    assert not list((tmp_path / "mine" / "base").iterdir())


@pytest.mark.slow
def test_no_step_changes_a_file_of_the_user(execute: Execute, task: FindTask, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "a.csv").write_text("table")
    (tmp_path / "iris.csv").write_text("iris")
    (tmp_path / "link.csv").symlink_to("iris.csv")
    lines = '[buckets.files]\n"gs://public/iris.csv" = "link.csv"\n"gs://public/tables" = "mine"\n'
    for state in ("SUCCEEDED", "SKIPPED"):
        record = execute(spoiling, configuration=configured(tmp_path, lines))
        assert task(record, "spoil")["outputs"]["parameters"] == {"Output": "iris"}
        assert task(record, "spoil-folder")["outputs"]["parameters"] == {"Output": "table"}
        assert task(record, "spoil-folder")["state"] == state
        assert (tmp_path / "iris.csv").read_text() == "iris"
        assert [(each.name, each.read_text()) for each in (tmp_path / "mine").iterdir()] == [("a.csv", "table")]
    assert removal.remove(Path(record["work_dir"], record["run_id"])) == []


def test_copies_are_made_once_and_only_of_what_exists(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("mine")
    copies = Copies(tmp_path / "run" / "copies")
    copies[tmp_path / "a"].write_text("changed")
    assert Copies(tmp_path / "run" / "copies")[tmp_path / "a"].read_text() == "changed"
    assert not copies[tmp_path / "gone"].exists()
    with pytest.raises(TaskFailed, match=r"cannot be copied into the run: .* contains "):
        copies[tmp_path]
    buckets = Buckets(files={"gs://a": tmp_path / "a"}, copies=copies)
    assert Path(buckets.to_local_paths("gs://a")).read_text() == "changed"
    with pytest.raises(OutsideBucket, match="only read"):
        buckets.check_writable(buckets.to_local_paths("gs://a"))


def test_an_address_leads_only_to_its_own_file(tmp_path: Path) -> None:
    buckets = Buckets(files={"gs://a/x": tmp_path / "x", "gs://b/": tmp_path / "b"})
    found: dict[str, Any] = {
        "gs://a/x": tmp_path / "x",
        "gs://a/x/y": tmp_path / "x" / "y",
        "/gcs/b/c/d": tmp_path / "b" / "c" / "d",
        "gs://a/xy": None,
        "gs://a": None,
        "gs://b/../a": None,
    }
    assert {uri: buckets.given_file(uri) for uri in found} == found
    assert buckets.to_local_paths(["--in=gs://a/x", "gs://other/x"]) == [f"--in={tmp_path}/x", "gs://other/x"]
    for uri in ("gs://a/x/out", str(tmp_path / "b" / "out")):
        with pytest.raises(OutsideBucket):
            buckets.check_writable(uri)
    assert issubclass(OutsideBucket, TaskFailed)
    buckets.check_writable(str(tmp_path / "other"))
