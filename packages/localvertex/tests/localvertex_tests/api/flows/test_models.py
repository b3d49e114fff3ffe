"""Models whose files the SDK uploads: python-aiplatform's tests/system/aiplatform/test_model_version_management.py."""

from pathlib import Path
from typing import Any

import pytest

from vertex_testing.server import Server

pytestmark = pytest.mark.slow


def test_versions_of_an_uploaded_model(cloud: Any, endpoint: Server, tmp_path: Path) -> None:
    file = tmp_path / "my_model.xgb"
    file.write_bytes(b"trees")
    upload = cloud.Model.upload_xgboost_model_file
    # The SDK appends "default" to the list.
    aliases = ["system-test-model", "testing"]
    model = upload(model_file_path=str(file), version_aliases=aliases, model_id="trees", version_description="First")
    folder = model.uri.removeprefix("gs://")
    assert (endpoint.work_dir / "buckets" / folder / "model.bst").read_bytes() == b"trees"
    assert (model.version_description, list(model.version_aliases)) == ("First", [*aliases])
    second = upload(model_file_path=str(file), parent_model="trees", is_default_version=False)
    assert (second.version_id, second.resource_name, second.version_aliases) == ("2", model.resource_name, [])
    registry = second.versioning_registry
    assert [each.version_id for each in registry.list_versions()] == ["1", "2"]
    assert registry.get_version_info("testing") == registry.list_versions()[0]
    registry.add_version_aliases(["new-alias"], "default")
    registry.remove_version_aliases(["testing"], "new-alias")
    assert list(registry.get_model("new-alias").version_aliases) == ["system-test-model", "default", "new-alias"]
    registry.delete_version("2")
    assert [each.version_id for each in registry.list_versions()] == ["1"]
    model = model.update(display_name="new_name", description="new_description", labels={"my_label": "updated"})
    assert (model.display_name, model.description, dict(model.labels)) == (
        "new_name",
        "new_description",
        {"my_label": "updated"},
    )
    model.delete()
