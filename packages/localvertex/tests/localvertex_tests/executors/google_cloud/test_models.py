"""ModelGetOp reads the local registry; a deletion there touches nothing that the registry did not make."""

from pathlib import Path

import pytest
from google_cloud_pipeline_components.types import artifact_types
from google_cloud_pipeline_components.v1.model import ModelGetOp, ModelUploadOp
from kfp import dsl

from localvertex.store import registry
from localvertex.store.model_versions import ModelVersions
from vertex_testing.runs import Execute, FindTask

LOCATION = "{{$.pipeline_google_cloud_location}}"


def delete(work_dir: Path) -> list[str]:
    """Delete the model of all tests; return what stays."""
    return ModelVersions.of(work_dir, "digits").delete()


@dsl.pipeline(name="get")
def get(name: str) -> None:
    ModelGetOp(model_name=name, location=LOCATION)


@dsl.pipeline(name="upload")
def upload(folder: str, aliases: list = []) -> None:  # noqa: B006
    imported = dsl.importer(artifact_uri=folder, artifact_class=artifact_types.UnmanagedContainerModel)
    uploaded = ModelUploadOp(
        display_name="digits",
        unmanaged_container_model=imported.output,
        version_aliases=aliases,
        location=LOCATION,
    ).set_caching_options(False)
    ModelGetOp(model_name="digits@new", location=LOCATION).after(uploaded).set_caching_options(False)


def tree(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def registered(work_dir: Path, files: Path) -> registry.Version:
    return registry.add(work_dir, {"display_name": "digits", "artifact_uri": str(files)})


@pytest.fixture
def users_files(tmp_path: Path) -> Path:
    """Return a folder of the user with a model."""
    folder = tmp_path / "mine"
    (folder / "variables").mkdir(parents=True)
    (folder / "saved_model.pb").write_text("graph")
    (folder / "variables" / "data").write_text("weights")
    return folder


def test_deleting_a_model_leaves_the_files_that_were_uploaded_and_those_beside_its_versions(
    work_dir: Path, users_files: Path
) -> None:
    for _ in range(2):
        registered(work_dir, users_files)
    folder = work_dir / "models" / "digits"
    (folder / "notes.txt").write_text("mine")
    (folder / "2" / "notes.txt").write_text("mine too")
    (folder / "7").mkdir()
    (folder / "7" / "model").write_text("not of the registry")
    other = registry.add(work_dir, {"display_name": "other", "artifact_uri": str(users_files)})
    before = tree(users_files)
    assert delete(work_dir) == ["2", "7", "notes.txt"]
    assert tree(users_files) == before
    assert tree(folder) == {"notes.txt": "mine", "2/notes.txt": "mine too", "7/model": "not of the registry"}
    assert tree(other.folder / "model") == before


def test_deleting_a_model_that_is_used_where_it_is_leaves_it(work_dir: Path) -> None:
    work_dir.mkdir()
    (work_dir / "weights").write_text("mine")
    version = registered(work_dir, work_dir.parent)
    assert version.uncopied
    # A folder of the name that copies have, which the registry did not make.
    (version.folder / "model").mkdir()
    (version.folder / "model" / "notes").write_text("mine too")
    delete(work_dir)
    assert (work_dir / "weights").read_text() == "mine"
    assert tree(version.folder) == {"model/notes": "mine too"}


@pytest.mark.parametrize("linked", ["digits", "digits/1", "digits/1/model"])
def test_deleting_a_model_follows_no_link(work_dir: Path, tmp_path: Path, users_files: Path, linked: str) -> None:
    registered(work_dir, users_files)
    aside = tmp_path / "moved"
    path = work_dir / "models" / linked
    path.rename(aside)
    path.symlink_to(aside)
    before = tree(aside)
    if linked.endswith("model"):
        delete(work_dir)
    else:
        with pytest.raises(ValueError, match="reached through a link"):
            delete(work_dir)
    assert tree(aside) == before


def test_a_version_with_a_damaged_entry_is_not_deleted(work_dir: Path, users_files: Path) -> None:
    version = registered(work_dir, users_files)
    (version.folder / "model.json").write_text("{")
    before = tree(work_dir / "models")
    with pytest.raises(ValueError, match=r"model\.json is damaged"):
        delete(work_dir)
    assert tree(work_dir / "models") == before


@pytest.mark.parametrize(("name", "version"), [("digits", "1"), ("digits@2", "2"), ("digits@champion", "2")])
def test_a_model_is_found_by_its_id_and_a_version_or_an_alias(
    execute: Execute, task: FindTask, work_dir: Path, users_files: Path, name: str, version: str
) -> None:
    for _ in range(2):
        registered(work_dir, users_files)
    (work_dir / "models" / "digits" / "aliases.json").write_text('{"default": "1", "champion": "2"}')
    record = execute(get, {"name": name}, project="p", region="europe-west4")
    assert record["state"] == "SUCCEEDED", record["error"]
    artifact = task(record, "model-get")["outputs"]["artifacts"]["model"][0]
    resource = f"projects/p/locations/europe-west4/models/digits@{version}"
    assert artifact["metadata"] == {"resourceName": resource}
    assert artifact["uri"] == f"https://europe-west4-aiplatform.googleapis.com/v1/{resource}"
    assert artifact["type"]["schemaTitle"] == "google.VertexModel"


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("digits@9", "NOT_FOUND: the model 'digits' has no version '9'; it has 1"),
        ("other", "NOT_FOUND: the model 'other' is not in "),
        ("a/b", "model_name 'a/b': expected ID, ID@VERSION or ID@ALIAS"),
    ],
)
def test_a_model_that_is_not_there_fails_the_step_in_one_line(
    execute: Execute, work_dir: Path, users_files: Path, name: str, error: str
) -> None:
    registered(work_dir, users_files)
    record = execute(get, {"name": name})
    assert record["state"] == "FAILED"
    assert record["error"].startswith(f"model-get: {error}")
    assert "\n" not in record["error"]


def test_an_alias_of_an_upload_names_the_newest_version_that_has_it(
    execute: Execute, task: FindTask, users_files: Path
) -> None:
    for version in ("1", "2"):
        record = execute(upload, {"folder": str(users_files), "aliases": ["new"]})
        assert record["state"] == "SUCCEEDED", record["error"]
        artifact = task(record, "model-get")["outputs"]["artifacts"]["model"][0]
        assert artifact["metadata"]["resourceName"].endswith(f"models/digits@{version}")


def test_an_upload_with_a_number_as_an_alias_is_refused(execute: Execute, work_dir: Path, users_files: Path) -> None:
    record = execute(upload, {"folder": str(users_files), "aliases": ["7"]})
    assert "version alias '7': expected lower-case letters" in record["error"]
    assert not [*(work_dir / "models").glob("*")]
