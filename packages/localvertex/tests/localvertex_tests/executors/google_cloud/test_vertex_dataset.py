"""GetVertexDatasetOp takes the files that the user names for a dataset."""

import json
from pathlib import Path

import pytest
from google_cloud_pipeline_components.v1.dataset import GetVertexDatasetOp
from kfp import dsl

from vertex_testing.runs import STEP, Command, Execute, FindTask

NAME = "projects/p/locations/us-central1/datasets/123"


@dsl.component(**STEP)
def read(dataset: dsl.Input[dsl.Artifact]) -> str:
    import pathlib

    return dataset.metadata["resourceName"] + " " + pathlib.Path(dataset.path, "labels.csv").read_text()


@dsl.pipeline(name="dataset")
def dataset(name: str) -> None:
    read(dataset=GetVertexDatasetOp(dataset_resource_name=name).outputs["dataset"])


def test_a_dataset_is_the_local_path_that_the_work_directory_names(
    execute: Execute, task: FindTask, work_dir: Path, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "labels.csv").write_text("a,b")
    work_dir.mkdir()
    (work_dir / "datasets.json").write_text(json.dumps({NAME: "../data"}))
    record = execute(dataset, {"name": NAME})
    assert record["state"] == "SUCCEEDED", record["error"]
    assert task(record, "read")["outputs"]["parameters"]["Output"] == f"{NAME} a,b"
    artifact = task(record, "get-vertex-dataset")["outputs"]["artifacts"]["dataset"][0]
    assert artifact["type"]["schemaTitle"] == "google.VertexDataset"
    assert artifact["metadata"] == {"resourceName": NAME}


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (None, f"the dataset {NAME} is not on this machine; write {json.dumps({NAME: 'PATH'})} to "),
        ("{}", f"/datasets.json has no dataset {NAME}; add "),
        ("[]", "/datasets.json: expected an object like "),
        (json.dumps({NAME: "nowhere"}), f"/datasets.json: the path 'nowhere' of {NAME} does not exist"),
        (json.dumps({NAME: 7}), f"/datasets.json: the path 7 of {NAME} does not exist"),
    ],
)
def test_a_dataset_that_is_not_there_fails_the_step_in_one_line(
    execute: Execute, work_dir: Path, content: str | None, error: str
) -> None:
    work_dir.mkdir()
    if content is not None:
        (work_dir / "datasets.json").write_text(content)
    record = execute(dataset, {"name": NAME})
    assert record["state"] == "FAILED"
    assert error in record["error"]
    assert "\n" not in record["error"]


def test_clean_keeps_a_run_whose_files_a_dataset_names(
    execute: Execute, command: Command, work_dir: Path, tmp_path: Path
) -> None:
    work_dir.mkdir()
    (work_dir / "datasets.json").write_text(json.dumps({NAME: "kept/data"}))
    for run_id in ("kept", "gone"):
        execute(dataset, {"name": NAME}, run_id=run_id)
    done = command("clean", "--yes")
    assert "datasets.json refers to its files" in done.stdout + done.stderr
    assert (work_dir / "kept" / "run.json").exists()
    assert not (work_dir / "gone").exists()
