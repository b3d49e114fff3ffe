"""`addresses = "gs"`: a step that takes gs:// apart, and calls Cloud Storage, works on the folders of the buckets."""

import json
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl

import localvertex
from localvertex._base.userinput.errors import UserError
from localvertex.runner import engine
from localvertex.values import configuration
from localvertex.values.configuration import Configuration
from vertex_testing.runs import STEP, Command, Compile, Execute, FindTask

KEPT = {"addresses": "gs"}


@dsl.component(**STEP)
def parse(uri: str, given: str, data: dsl.Input[dsl.Dataset], copy: dsl.Output[dsl.Dataset]) -> str:
    """Return what a step sees that reads its address by itself."""
    from google.cloud import storage

    assert uri.startswith("gs://")
    text = storage.Blob.from_string(uri, storage.Client()).download_as_text()
    with open(data.path) as file, open(copy.path, "w") as copied:
        copied.write(file.read() + text)
    with open(given) as file:
        return text + file.read()


@dsl.component(**STEP)
def read(path: str) -> str:
    with open(path) as file:
        return file.read()


@dsl.pipeline(name="addresses")
def pipeline(uri: str = "gs://data/folder/a.txt") -> None:
    imported = dsl.importer(artifact_uri="gs://data/folder/b.txt", artifact_class=dsl.Dataset).output
    parse(uri=uri, data=imported, given="gs://public/given.txt")
    read(path=uri)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder with the bucket `data`."""
    (tmp_path / "buckets" / "data" / "folder").mkdir(parents=True)
    for name in ("a", "b"):
        (tmp_path / "buckets" / "data" / "folder" / f"{name}.txt").write_text(name)
    (tmp_path / "public").mkdir()
    (tmp_path / "public" / "given.txt").write_text("given")
    return tmp_path / "buckets"


@pytest.mark.slow
@pytest.mark.parametrize("own", ["", "pipeline.addresses."])
def test_a_step_that_parses_its_address_is_proposed_to_get_it(
    compiled: Compile, command: Command, task: FindTask, root: Path, tmp_path: Path, work_dir: Path, own: str
) -> None:
    compiled(pipeline)
    file = tmp_path / "localvertex.toml"
    before = f'[buckets]\nroot = "{root}"\n[buckets.files]\n"gs://public" = "public"\n'
    file.write_text(before + "[pipeline.addresses.parameters]\n" * bool(own))
    done = command("run", "pipeline.json", "--run-id", "first")
    proposal = f'[{own}step.parse]\naddresses = "gs"'
    assert (done.returncode, proposal in done.stdout, "step.read" in done.stdout) == (1, True, False), done.stdout
    file.write_text(f"{file.read_text()}\n{proposal}\n")
    done = command("run", "pipeline.json", "--run-id", "second")
    assert done.returncode == 0, done.stdout
    record = json.loads((work_dir / "second" / "run.json").read_text())
    outputs = task(record, "parse")["outputs"]
    assert outputs["parameters"]["Output"] == "agiven"
    assert Path(outputs["artifacts"]["copy"][0]["uri"]).read_text() == "ba"
    assert task(record, "read")["outputs"]["parameters"]["Output"] == "a"
    # It has failed with its addresses: nothing more is proposed.
    (root / "data" / "folder" / "a.txt").unlink()
    done = command("run", "pipeline.json", "--no-cache", "--run-id", "third")
    assert (done.returncode, "add to localvertex.toml" in done.stdout) == (1, False), done.stdout


@dsl.component(**STEP)
def cut(uri: str) -> str:
    """Take the scheme off, which asks for a bucket of a path's name."""
    from google.cloud import storage

    bucket = storage.Client().get_bucket(uri[5:])
    bucket.blob("made.txt").upload_from_string("made")
    return str(bucket.name)


@pytest.mark.slow
def test_a_step_that_cuts_its_address_is_proposed_to_get_it_and_not_as_given(
    compiled: Compile, command: Command, root: Path, tmp_path: Path
) -> None:
    @dsl.pipeline(name="cuts")
    def cuts(uri: str = "gs://data") -> None:
        cut(uri=uri)

    compiled(cuts)
    file = tmp_path / "localvertex.toml"
    file.write_text(f'[buckets]\nroot = "{root}"\n')
    done = command("run", "pipeline.json")
    proposal = '[step.cut]\naddresses = "gs"'
    assert (done.returncode, proposal in done.stdout, "outputs" in done.stdout) == (1, True, False), done.stdout
    file.write_text(f"{file.read_text()}\n{proposal}\n")
    done = command("run", "pipeline.json")
    assert done.returncode == 0, done.stdout
    assert (root / "data" / "made.txt").read_text() == "made"


PROGRAM = """
import os, pathlib, sys
folders = [os.environ[f"AIP_{each}"] for each in ("MODEL_DIR", "CHECKPOINT_DIR", "TENSORBOARD_LOG_DIR")]
pathlib.Path(os.environ["LOCALVERTEX_GCS_ROOT"], "data", "seen").write_text(" ".join([*sys.argv[1:], *folders]))
"""


@pytest.mark.parametrize("kept", [True, False])
def test_a_custom_job_gets_its_arguments_and_folders_in_one_form(execute: Execute, root: Path, kept: bool) -> None:
    from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp

    @dsl.pipeline(name="job")
    def job() -> None:
        container = {"image_uri": "any", "command": ["python3", "-c", PROGRAM], "args": ["gs://data/folder"]}
        pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}
        CustomTrainingJobOp(display_name="j", worker_pool_specs=[pool], base_output_directory="gs://data/base")

    table = {"custom-training-job": KEPT} if kept else {}
    record = execute(job, gcs_root=root, configuration=Configuration(step=table))
    assert record["state"] == "SUCCEEDED", record["error"]
    start = "gs:/" if kept else str(root)
    expected = ["folder", "base/model/", "base/checkpoints/", "base/logs/"]
    assert (root / "data" / "seen").read_text().split() == [f"{start}/data/{each}" for each in expected]
    assert (root / "data" / "base" / "model").is_dir()


def test_what_would_ask_google_and_what_is_no_step_is_refused(compiled: Compile, tmp_path: Path) -> None:
    @dsl.component(**STEP)
    def learn(uri: str) -> None:
        import tensorflow as tf

        tf.io.gfile.exists(uri)

    @dsl.pipeline(name="learns")
    def learns(uri: str) -> None:
        learn(uri=uri)
        dsl.importer(artifact_uri="gs://data/x", artifact_class=dsl.Dataset)

    file = compiled(learns)
    for name, kind, text in (
        ("learn", "gs", "its code uses tensorflow, whose own client of gs:// asks Google"),
        ("importer", "gs", "are for a step with a program"),
    ):
        found = Configuration(step={name: {"addresses": kind}})
        with pytest.raises(UserError, match=text):
            engine.open_file(file, localvertex.Options(configuration=found))
    engine.open_file(file, localvertex.Options(configuration=Configuration(step={"learn": {"addresses": "folder"}})))


def test_the_choice_is_part_of_the_record(tmp_path: Path) -> None:
    file = tmp_path / "localvertex.toml"
    file.write_text('[step.parse]\naddresses = "gs"\n')
    found: dict[str, Any] = json.loads(json.dumps(configuration.read(file).as_json()))
    assert Configuration.of_json(found).step == {"parse": KEPT}
