"""models through the real SDK: versions, aliases, and the registry that pipelines share."""

import json
import shutil
from typing import Any

import pytest
from google.api_core import exceptions

from localvertex.store import registry
from vertex_testing.server import PARENT, Server

pytestmark = pytest.mark.slow


def versions(aiplatform: Any, name: str) -> dict[str, list[str]]:
    return {
        each.version_id: list(each.version_aliases) for each in aiplatform.models.ModelRegistry(name).list_versions()
    }


def test_a_model_its_versions_and_its_aliases(server: Server, sdk: Any) -> None:
    aiplatform = sdk(server)
    for number in ("1", "2"):
        folder = server.work_dir / "buckets" / "models" / number
        folder.mkdir(parents=True)
        (folder / "weights").write_text(number)
    how = {"display_name": "digits", "serving_container_image_uri": "serving:1"}
    first = aiplatform.Model.upload(artifact_uri="gs://models/1", labels={"team": "v"}, **how)
    name = first.resource_name
    aiplatform.Model.upload(
        artifact_uri="gs://models/2", parent_model=name, is_default_version=True, version_aliases=["champion"], **how
    )
    assert versions(aiplatform, name) == {"1": [], "2": ["champion", "default"]}
    assert [aiplatform.Model(f"{name}{at}").uri for at in ("", "@1", "@champion")] == [
        "gs://models/2",
        "gs://models/1",
        "gs://models/2",
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


@pytest.mark.parametrize("uri", ["gs://models/empty", "gs://absent/x", "gs://b/../../x", "/no/such/folder"])
def test_a_model_without_its_files_is_not_uploaded(server: Server, uri: str) -> None:
    (server.work_dir / "buckets" / "models" / "empty" / "below").mkdir(parents=True, exist_ok=True)
    model = {"displayName": "lost", "artifactUri": uri}
    answer = server.call("POST", "models:upload", {"model": model})
    assert (answer.status_code, answer.json()["error"]["status"]) == (400, "FAILED_PRECONDITION"), answer.text
    assert "lost" not in [each["displayName"] for each in server.call("GET", "models").json().get("models", [])]


def test_fields_of_a_model_are_those_of_all_its_versions(server: Server, sdk: Any) -> None:
    aiplatform = sdk(server)
    how = {"serving_container_image_uri": "serving:1"}
    first = aiplatform.Model.upload(display_name="shared", description="d", labels={"a": "1"}, **how)
    name = first.resource_name
    aiplatform.Model.upload(
        parent_model=name, display_name="other", labels={"b": "2"}, version_description="two", **how
    )
    second = aiplatform.Model(f"{name}@2")
    assert (second.display_name, second.description, second.labels) == ("shared", "d", {"a": "1", "b": "2"})
    first.update(display_name="renamed", description="e", labels={"a": "3"})
    second = aiplatform.Model(f"{name}@2")
    assert (second.display_name, second.description, second.labels) == ("renamed", "e", {"a": "3", "b": "2"})
    of_models = aiplatform.models.ModelRegistry(name)
    of_models.update_version("2", version_description="changed", labels={"c": "4"})
    second = aiplatform.Model(f"{name}@2")
    assert (second.version_description, second.labels) == ("changed", {"a": "3", "c": "4"})
    assert aiplatform.Model(f"{name}@1").labels == {"a": "3"}
    # The fields of the model outlive the version that they came with.
    of_models.add_version_aliases(["default"], "2")
    of_models.delete_version("1")
    second = aiplatform.Model(name)
    assert (second.display_name, second.labels) == ("renamed", {"a": "3", "c": "4"})
    second.delete()
    assert not (server.work_dir / "models" / second.name).exists()


@pytest.mark.parametrize(
    ("at", "mask", "status"),
    [
        ("", "versionDescription", "FAILED_PRECONDITION"),
        ("@1", "displayName", "FAILED_PRECONDITION"),
        ("@1", "labels,description", "FAILED_PRECONDITION"),
        ("", "artifactUri", "INVALID_ARGUMENT"),
        ("", "", "INVALID_ARGUMENT"),
        ("@-", "description", None),
        ("@default", "versionDescription", None),
    ],
)
def test_an_update_names_the_model_or_a_version(server: Server, at: str, mask: str, status: str | None) -> None:
    version = registry.add(server.work_dir, {"display_name": "updated", "artifact_uri": "/data/1"})
    answer = server.call("PATCH", f"models/{version.model_id}{at}", {"description": "x"}, params={"updateMask": mask})
    assert answer.status_code == (400 if status else 200), answer.text
    assert answer.json().get("error", {}).get("status") == status


def test_aliases_are_in_the_order_of_their_assignment(server: Server, sdk: Any) -> None:
    aiplatform = sdk(server)
    how = {"display_name": "ordered", "serving_container_image_uri": "serving:1"}
    name = aiplatform.Model.upload(version_aliases=["zebra", "ant"], **how).resource_name
    of_models = aiplatform.models.ModelRegistry(name)
    of_models.add_version_aliases(["middle", "zebra"], "1")
    assert versions(aiplatform, name) == {"1": ["zebra", "ant", "default", "middle"]}
    aiplatform.Model.upload(parent_model=name, is_default_version=False, version_aliases=["bee", "ant"], **how)
    assert versions(aiplatform, name) == {"1": ["zebra", "default", "middle"], "2": ["bee", "ant"]}


def test_versions_are_named_and_paged(server: Server) -> None:
    for _ in range(3):
        version = registry.add(server.work_dir, {"display_name": "paged", "artifact_uri": "/data/1"})
    seen, token = [], ""
    for _ in range(3):
        query = {"pageSize": "1", "pageToken": token}
        page = server.call("GET", f"models/{version.model_id}:listVersions", params=query).json()
        seen += [each["name"].rpartition("/")[2] for each in page["models"]]
        token = page.get("nextPageToken", "")
    assert sorted(seen) == [f"{version.model_id}@{number}" for number in (1, 2, 3)]
    assert token == ""
    names = [server.call("GET", f"models/{version.model_id}{at}").json()["name"] for at in ("", "@default", "@3")]
    assert [each.rpartition("/")[2].partition("@")[2] for each in names] == ["", "1", "3"]


def test_models_are_found_by_id_and_label(server: Server, sdk: Any) -> None:
    model = {"displayName": "found by", "labels": {"my_key": "v"}}
    server.call("POST", "models:upload", {"model": model, "modelId": "m-1234"}).raise_for_status()
    for text in ("model=m-1234", 'labels.my_key="v"'):
        assert [each.name for each in sdk(server).Model.list(filter=text)] == ["m-1234"], text
    assert "m-1234" not in [each.name for each in sdk(server).Model.list(filter="model!=m-1234")]
    assert sdk(server).Model.list(filter="model=m-123") == []


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


@pytest.mark.parametrize("text", ["{", "[]", '"x"', "\x00"])
def test_a_model_with_damaged_aliases_is_shown_as_such_and_can_only_be_deleted(server: Server, text: str) -> None:
    for _ in range(2):
        version = registry.add(server.work_dir, {"display_name": "aliases", "artifact_uri": "/data/1"})
    name = f"models/{version.model_id}"
    (version.folder.parent / "aliases.json").write_text(text)
    assert "is damaged" in server.call("GET", name).json()["versionDescription"]
    upload = {"parentModel": f"{PARENT}/{name}", "model": {"displayName": "aliases"}}
    for method, path, body in (
        ("POST", f"{name}@2:mergeVersionAliases", {"versionAliases": ["best"]}),
        ("DELETE", f"{name}@2:deleteVersion", None),
        ("PATCH", f"{name}?updateMask=description", {"description": "new"}),
        ("POST", "models:upload", upload),
    ):
        answer = server.call(method, path, body)
        assert (answer.status_code, answer.json()["error"]["status"]) == (400, "FAILED_PRECONDITION"), path
        assert "delete the model, or repair the file" in answer.json()["error"]["message"]
    assert sorted(each.name for each in version.folder.parent.iterdir()) == ["1", "2", "aliases.json"]
    assert server.call("DELETE", name).json()["done"] is True
    assert server.call("GET", name).status_code == 404
    assert not version.folder.parent.exists()


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


def test_labels_are_those_of_the_model_and_of_the_version(server: Server, sdk: Any) -> None:
    aiplatform = sdk(server)
    how = {"display_name": "labelled", "serving_container_image_uri": "serving:1"}
    name = aiplatform.Model.upload(labels={"managed-by": "us", "checkpoint": "1e3"}, **how).resource_name
    aiplatform.Model.upload(parent_model=name, is_default_version=True, labels={"run-id": "r2"}, **how)
    of_models = aiplatform.models.ModelRegistry(name)

    def versions_with(text: str) -> list[str]:
        answer = of_models.client.list_model_versions({"name": name, "filter": text})
        return [each.version_id for each in answer]

    assert versions_with('labels.run-id="r2"') == ["2"]
    assert versions_with("labels.run-id:*") == versions_with("labels:run-id") == ["2"]
    assert versions_with('labels.managed-by="us" AND NOT labels:run-id') == ["1"]
    assert versions_with('labels.checkpoint="1e3"') == ["1", "2"]
    # Values of labels are text: numbers that are equal are other labels.
    assert versions_with('labels.checkpoint="1000"') == []
    assert [each.resource_name for each in aiplatform.Model.list(filter='labels.run-id="r2"')] == [name]
    assert aiplatform.Model.list(filter='labels.run-id="r1"') == []
    assert [each.name for each in aiplatform.Model.list(filter='display_name="labelled" AND labels:managed-by')]
    assert of_models.get_version_info("2").version_aliases == ["default"]


def test_an_upload_over_the_api_and_one_of_a_pipeline_move_aliases_alike(server: Server, sdk: Any) -> None:
    aiplatform = sdk(server)
    first = registry.add(server.work_dir, {"display_name": "both"}, aliases=["champion"])
    name = f"{PARENT}/models/{first.model_id}"
    how = {"display_name": "both", "serving_container_image_uri": "serving:1", "parent_model": name}
    second = aiplatform.Model.upload(version_aliases=["champion"], is_default_version=True, **how)
    assert versions(aiplatform, name) == {"1": [], "2": ["champion", "default"]}
    registry.add(server.work_dir, {"display_name": "both"}, name, ["champion"])
    assert versions(aiplatform, name) == {"1": [], "2": ["default"], "3": ["champion"]}
    # As in the service, the number of a version that was deleted is not used again.
    second.versioning_registry.delete_version("champion")
    assert registry.add(server.work_dir, {"display_name": "both"}, name).number == 4
    with pytest.raises(exceptions.Conflict):
        aiplatform.Model.upload(model_id=first.model_id, **{**how, "parent_model": None})
    with pytest.raises(exceptions.NotFound):
        aiplatform.Model.upload(**{**how, "parent_model": f"{PARENT}/models/other"})


@pytest.mark.parametrize("field", ["create_time", "labels", "container_spec", "version_description"])
def test_a_version_that_was_edited_by_hand_does_not_hide_the_others(server: Server, sdk: Any, field: str) -> None:
    aiplatform = sdk(server)
    for _ in range(2):
        version = registry.add(server.work_dir, {"display_name": f"edited {field}", "artifact_uri": "/data/1"})
    path = version.folder / "model.json"
    for value in (["yesterday"], 7, {"a": []}):
        path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
        (found,) = aiplatform.Model.list(filter=f'display_name="edited {field}"')
        assert [*versions(aiplatform, found.resource_name)] in (["1", "2"], ["2", "1"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("1/model.json", ""),
        ("1/model.json", '{"container_spec": {"\\ud800": 1}}'),
        ("1/model.json", '{"container_spec": "\\ud800"}'),
        ("shared.json", ""),
    ],
)
def test_no_damaged_file_is_an_error_of_the_server(server: Server, name: str, text: str) -> None:
    version = registry.add(server.work_dir, {"display_name": "torn"})
    path = f"models/{version.model_id}"
    (version.folder.parent / name).write_text(text)
    try:
        assert server.call("POST", f"{path}:mergeVersionAliases", {"versionAliases": ["champion"]}).status_code == 200
        assert server.call("PATCH", f"{path}@1?updateMask=labels", {"labels": {"a": "b"}}).status_code in (200, 400)
        assert server.call("PATCH", f"{path}?updateMask=labels", {"labels": {"a": "b"}}).status_code == 200
        (version.folder.parent / name).write_text(text)
        assert [server.call("GET", each).status_code for each in ("models", path, f"{path}:listVersions")] == [200] * 3
    finally:
        shutil.rmtree(version.folder.parent)
