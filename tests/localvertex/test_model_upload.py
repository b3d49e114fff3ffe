"""A model upload becomes a version in the local registry."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from google_cloud_pipeline_components.types import artifact_types
from google_cloud_pipeline_components.v1.model import ModelUploadOp
from google_cloud_pipeline_components.v1.vertex_notification_email import VertexNotificationEmailOp
from kfp import dsl

from localvertex.state import registry


@dsl.pipeline(name="upload")
def upload(name: str = "digits", folder: str = "somewhere", notes: str = "first"):
    imported = dsl.importer(
        artifact_uri=folder,
        artifact_class=artifact_types.UnmanagedContainerModel,
        metadata={"containerSpec": {"imageUri": "us-docker.pkg.dev/serving:1", "healthRoute": "/ok"}},
    )
    first = ModelUploadOp(
        display_name=name,
        description=notes,
        unmanaged_container_model=imported.output,
        location="{{$.pipeline_google_cloud_location}}",
        labels={"team": "vision"},
    ).set_caching_options(False)
    ModelUploadOp(
        display_name=name,
        unmanaged_container_model=imported.output,
        parent_model=first.outputs["model"],
        location="{{$.pipeline_google_cloud_location}}",
    ).set_caching_options(False)


def test_versions_of_a_model_are_counted_and_described(execute, task, work_dir, tmp_path):
    record = execute(upload, {"folder": str(tmp_path), "notes": 'with "quotes"'}, project="p", region="europe-west4")
    assert record["state"] == "SUCCEEDED", record["error"]
    model = json.loads((work_dir / "models" / "digits" / "1" / "model.json").read_text())
    assert model["display_name"] == "digits"
    assert model["description"] == 'with "quotes"'
    assert model["labels"] == {"team": "vision"}
    assert model["artifact_uri"] == str(tmp_path)
    assert model["container_spec"] == {"image_uri": "us-docker.pkg.dev/serving:1", "health_route": "/ok"}
    artifact = task(record, "model-upload")["outputs"]["artifacts"]["model"][0]
    name = "projects/p/locations/europe-west4/models/digits@1"
    assert artifact["metadata"] == {"resourceName": name}
    assert artifact["uri"] == f"https://europe-west4-aiplatform.googleapis.com/v1/{name}"
    second = task(record, "model-upload-2")["outputs"]["artifacts"]["model"][0]
    assert second["metadata"]["resourceName"].endswith("models/digits@2")
    assert [each["resource_name"] for each in record["models"]][1].endswith("@2")


def test_different_names_never_share_a_model(tmp_path):
    ids = {registry.add(tmp_path, {"display_name": name}).model_id for name in ("a b", "a-b", "A b", "ä b", "../a b")}
    assert len(ids) == 5
    assert all((tmp_path / "models" / each / "1").is_dir() for each in ids)


def test_uploads_at_the_same_time_get_different_versions_and_leave_nothing_behind(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        versions = list(pool.map(lambda _: registry.add(tmp_path, {"display_name": "m"}).number, range(24)))
    assert sorted(versions) == list(range(1, 25))
    assert sorted(int(each.name) for each in (tmp_path / "models" / "m").iterdir()) == list(range(1, 25))


@pytest.mark.parametrize("parent", ["projects/p/locations/l/models/absent@1", "models/../../x", "nonsense"])
def test_a_parent_that_is_not_registered_is_refused(tmp_path, parent):
    with pytest.raises(ValueError, match="is not in"):
        registry.add(tmp_path, {"display_name": "m"}, parent)


@dsl.pipeline(name="notifies")
def notifies(folder: str, recipients: list = ["a@example.org", "b@example.org"]):  # noqa: B006
    mail = VertexNotificationEmailOp(recipients=recipients)
    with dsl.ExitHandler(mail):
        dsl.importer(artifact_uri=folder, artifact_class=dsl.Dataset)


def test_googles_email_is_said_and_not_sent(execute, tmp_path):
    record = execute(notifies, {"folder": str(tmp_path)})
    assert record["state"] == "SUCCEEDED", record["error"]
    assert [
        text for text in record["warnings"] if "Vertex AI would notify a@example.org, b@example.org: SUCCEEDED" in text
    ]
