"""An importer records an artifact that already exists."""

from pathlib import Path

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
