"""An importer records an artifact that already exists."""

from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.types.artifact_types import UnmanagedContainerModel
from google_cloud_pipeline_components.v1.model import ModelUploadOp
from kfp import dsl
from kfp.dsl import Dataset, Input

from vertex_testing.runs import STEP, Execute, FindTask


@dsl.component(**STEP)
def read(data: Input[Dataset]) -> str:
    with open(data.path) as file:
        return file.read()


@dsl.pipeline(name="imports")
def imports(place: str = "somewhere", image: str = "us-docker.pkg.dev/x/y:1") -> None:
    metadata = {"containerSpec": {"imageUri": image}, "count": 2}
    read(data=dsl.importer(artifact_uri=place, artifact_class=Dataset, metadata=metadata).output)


def test_an_importer_takes_uri_and_metadata_from_parameters(execute: Execute, task: FindTask, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("imported")
    record = execute(imports, {"place": str(tmp_path / "data")})
    artifact = task(record, "importer")["outputs"]["artifacts"]["artifact"][0]
    assert artifact["uri"] == str(tmp_path / "data")
    assert artifact["metadata"] == {"containerSpec": {"imageUri": "us-docker.pkg.dev/x/y:1"}, "count": 2}
    assert task(record, "read")["outputs"]["parameters"]["Output"] == "imported"


@dsl.component(**STEP)
def train(folder: str, name: str = "") -> None:
    import os

    os.makedirs(folder, exist_ok=True)
    if name:
        with open(os.path.join(folder, name), "w") as file:
            file.write("weights")


@dsl.pipeline(name="alone")
def imports_alone(folder: str, name: str = "") -> None:
    dsl.importer(artifact_uri=folder, artifact_class=UnmanagedContainerModel)


@dsl.pipeline(name="after")
def imports_after_training(folder: str, name: str = "") -> None:
    trained = train(folder=folder, name=name)
    dsl.importer(artifact_uri=folder, artifact_class=dsl.Model).after(trained)


@dsl.pipeline(name="before")
def imports_before_training(folder: str, name: str = "") -> None:
    trained = train(folder=folder, name=name)
    model = dsl.importer(artifact_uri=folder, artifact_class=UnmanagedContainerModel).output
    location = "{{$.pipeline_google_cloud_location}}"
    ModelUploadOp(display_name="late", unmanaged_container_model=model, location=location).after(trained)


NAMED = {"after": imports_after_training, "before": imports_before_training}


@pytest.mark.parametrize("pipeline", [imports_alone, *NAMED.values()], ids=["alone", *NAMED])
def test_a_model_without_files_fails_where_it_is_imported_or_used(
    execute: Execute, tmp_path: Path, pipeline: Any
) -> None:
    record = execute(pipeline, {"folder": str(tmp_path / "model")})
    assert record["state"] == "FAILED"
    assert f'There are no files under "{tmp_path}/model" to copy' in record["error"]
    failed = "model-upload" if pipeline is imports_before_training else "importer"
    assert record["failed_task"] == failed


@pytest.mark.parametrize("pipeline", NAMED.values(), ids=NAMED)
def test_a_model_that_is_imported_after_or_before_its_training_is_found(
    execute: Execute, tmp_path: Path, pipeline: Any
) -> None:
    record = execute(pipeline, {"folder": str(tmp_path / "model"), "name": "weights"})
    assert record["state"] == "SUCCEEDED", record["error"]


def test_what_is_no_model_may_be_imported_without_files(execute: Execute, tmp_path: Path) -> None:
    @dsl.pipeline(name="dataset")
    def imports_dataset(folder: str) -> None:
        dsl.importer(artifact_uri=folder, artifact_class=Dataset)

    record = execute(imports_dataset, {"folder": str(tmp_path / "absent")})
    assert record["state"] == "SUCCEEDED", record["error"]
    assert [text for text in record["warnings"] if "does not exist on this machine" in text]
