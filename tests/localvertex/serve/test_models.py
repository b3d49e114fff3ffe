"""models through the real SDK: versions, aliases, and the registry that pipelines share."""

from typing import Any

import pytest
from google.api_core import exceptions

from localvertex.state import registry
from tests.support.server import Server

pytestmark = pytest.mark.slow


def versions(aiplatform: Any, name: str) -> dict[str, list[str]]:
    return {
        each.version_id: list(each.version_aliases) for each in aiplatform.models.ModelRegistry(name).list_versions()
    }


def test_a_model_its_versions_and_its_aliases(server: Server, sdk: Any) -> None:
    aiplatform = sdk(server)
    how = {"display_name": "digits", "serving_container_image_uri": "serving:1"}
    first = aiplatform.Model.upload(artifact_uri="gs://b/1", labels={"team": "v"}, **how)
    name = first.resource_name
    aiplatform.Model.upload(
        artifact_uri="gs://b/2", parent_model=name, is_default_version=True, version_aliases=["champion"], **how
    )
    assert versions(aiplatform, name) == {"1": [], "2": ["champion", "default"]}
    assert [aiplatform.Model(f"{name}{at}").uri for at in ("", "@1", "@champion")] == [
        "gs://b/2",
        "gs://b/1",
        "gs://b/2",
    ]
    assert [each.resource_name for each in aiplatform.Model.list(filter='display_name="digits"')] == [name]
    of_models = aiplatform.models.ModelRegistry(name)
    of_models.add_version_aliases(["champion", "old"], "1")
    of_models.remove_version_aliases(["old"], "1")
    assert versions(aiplatform, name) == {"1": ["champion"], "2": ["default"]}
    aiplatform.Model(name).update(display_name="digits 2", labels={"team": "w"})
    assert (aiplatform.Model(name).display_name, aiplatform.Model(name).labels) == ("digits 2", {"team": "w"})
    with pytest.raises(exceptions.BadRequest, match="default"):
        of_models.delete_version("2")
    of_models.delete_version("champion")
    assert list(versions(aiplatform, name)) == ["2"]
    first.delete()
    with pytest.raises(exceptions.NotFound):
        aiplatform.Model(name)


def test_models_that_pipelines_registered_are_listed(server: Server, sdk: Any) -> None:
    model = {"display_name": "from a pipeline", "artifact_uri": "/data/1", "container_spec": {"image_uri": "serving:1"}}
    version = registry.add(server.work_dir, model)
    (found,) = sdk(server).Model.list(filter='display_name="from a pipeline"')
    assert (found.name, found.uri, found.version_id) == (version.model_id, "/data/1", "1")


def test_deleting_a_model_leaves_what_the_registry_did_not_make(server: Server, sdk: Any) -> None:
    source = server.work_dir.parent / "mine"
    source.mkdir()
    (source / "weights").write_text("mine")
    for _ in range(2):
        version = registry.add(server.work_dir, {"display_name": "kept", "artifact_uri": str(source)})
    (version.folder.parent / "notes.txt").write_text("mine too")
    (found,) = sdk(server).Model.list(filter='display_name="kept"')
    found.delete()
    assert [each.name for each in version.folder.parent.iterdir()] == ["notes.txt"]
    assert (source / "weights").read_text() == "mine"
    assert sdk(server).Model.list(filter='display_name="kept"') == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"model": {}}, 400),
        ({"model": {"displayName": "x"}, "modelId": "../x"}, 400),
        ({"model": {"displayName": "x", "versionAliases": ["1"]}}, 400),
        ({"model": {"displayName": "x"}, "parentModel": "projects/p/locations/l/models/../../x"}, 404),
        ({"model": {"displayName": "x", "colour": "red"}}, 400),
    ],
)
def test_a_wrong_upload_is_refused(server: Server, body: dict[str, Any], code: int) -> None:
    before = sorted(server.work_dir.glob("models/*/*"))
    response = server.call("POST", "models:upload", body)
    assert (response.status_code, response.json()["error"]["code"]) == (code, code)
    assert sorted(server.work_dir.glob("models/*/*")) == before
