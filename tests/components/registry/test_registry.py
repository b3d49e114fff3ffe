"""Registered models as the steps of a local run see them: those that `localvertex` has registered."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from components.registry.registry import Registry
from components.vertex_clients import NotFoundError
from localvertex._base.userinput.errors import UserError
from localvertex.store import registry
from localvertex.store.model_versions import ModelVersions
from vertex_testing.own_endpoint import reachable


def fill(work_dir: Path) -> None:
    """Register two versions of a model, the second of which is the champion, and two other models."""
    for number in (1, 2):
        files = work_dir / f"files-{number}"
        files.mkdir()
        (files / "saved_model.pb").write_text(str(number))
        labels = {"managed-by": "vertex-gpu-training", "run-id": f"run{number}", "checkpoint": "c" * 32}
        registry.add(work_dir, {"display_name": "Pet images", "artifact_uri": str(files), "labels": labels})
    registry.add(work_dir, {"display_name": "elsewhere", "artifact_uri": "gs://bucket/model"})
    registry.add(work_dir, {"display_name": "no-files", "labels": {"managed-by": "vertex-gpu-training"}})
    ModelVersions.of(work_dir, model_id(work_dir)).merge("2", ["champion"])


def model_id(work_dir: Path) -> str:
    (found,) = [each.name for each in (work_dir / "models").iterdir() if each.name.startswith("pet")]
    return found


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A work folder that no test changes, and its endpoint."""
    work_dir = tmp_path_factory.mktemp("runs")
    fill(work_dir)
    with reachable(work_dir):
        yield work_dir


def of(work_dir: Path) -> Registry:
    return Registry(region="us-central1", pipeline_root=f"{work_dir}/")


def version(work_dir: Path, name: str, version: str) -> str:
    return (Path(of(work_dir).version(name, version).artifact_uri) / "saved_model.pb").read_text()


def test_a_version_is_found_by_number_and_by_alias(shared: Path) -> None:
    assert [version(shared, "Pet images", each) for each in ("1", "2", "champion", "default")] == ["1", "2", "2", "1"]


@pytest.mark.parametrize(
    ("name", "version", "message"),
    [
        ("Pet images", "3", "has no version '3'; it has 1, default, 2, champion"),
        ("Pet images", "best", "has no version 'best'"),
        ("pets", "1", "no registered model in us-central1 has the name 'pets' and the label managed-by="),
        ("elsewhere", "1", "no registered model"),
        ("../models/elsewhere", "1", "no registered model"),
        ('a" OR display_name="Pet images', "1", "no registered model"),
        ("no-files", "1", "has no files"),
    ],
)
def test_what_is_not_there_is_refused(shared: Path, name: str, version: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        of(shared).version(name, version)
    assert "\n" not in str(caught.value)


def test_the_pipelines_model_and_its_versions(shared: Path) -> None:
    found = of(shared)
    name = found.find("Pet images")
    assert name.endswith(f"/models/{model_id(shared)}")
    # A model of the same name without the label is another program's.
    assert found.find("elsewhere") == "" == found.find("nothing")
    assert [(each.number, each.name, each.aliases) for each in found.versions(name)] == [
        ("1", f"{name}@1", ("default",)),
        ("2", f"{name}@2", ("champion",)),
    ]
    champion = found.champion(name)
    assert champion is not None
    assert champion.number == "2"
    of_run = found.version_of_run(name, "run1", "c" * 64)
    assert of_run is not None
    assert (of_run.number, of_run.labels["run-id"]) == ("1", "run1")
    assert found.version_of_run(name, "run1", "d" * 64) is None is found.version_of_run(name, "run3", "c" * 64)
    with pytest.raises(NotFoundError):
        found.versions(f"{name}x")


@pytest.mark.parametrize("name", ["Hündchen é 犬", "Pet *", "50% [a]?"])
def test_a_model_is_found_by_exactly_its_name(tmp_path: Path, name: str) -> None:
    """One that is not found has no champion, and one of another name is no parent."""
    labels = {"managed-by": "vertex-gpu-training"}
    registry.add(tmp_path, {"display_name": "Pet images", "artifact_uri": "gs://b/m", "labels": labels})
    with reachable(tmp_path):
        assert of(tmp_path).find(name) == ""
        registry.add(tmp_path, {"display_name": name, "artifact_uri": "gs://b/m", "labels": labels})
        assert of(tmp_path).get(of(tmp_path).find(name)).artifact_uri == "gs://b/m"


def test_changes_of_a_step_are_changes_of_the_registry(tmp_path: Path) -> None:
    fill(tmp_path)
    with reachable(tmp_path):
        found = of(tmp_path)
        name = found.find("Pet images")
        found.merge_aliases(f"{name}@1", ["champion"])
        found.describe(f"{name}@1", "better")
        found.label_version(f"{name}@2", {"refused": "yes"})
        versions = ModelVersions.of(tmp_path, model_id(tmp_path))
        assert versions.aliases == {"default": "1", "champion": "1"}
        assert versions.content("1")["version_description"] == "better"
        assert [each.labels.get("refused") for each in found.versions(name)] == [None, "yes"]
        with pytest.raises(UserError, match=r"cannot be set: .*the service refused it"):
            found.merge_aliases(f"{name}@1", ["Not An Alias"])
        # A default version alone is not a champion: the service gives this alias to any first version.
        champion = found.champion(name)
        assert champion is not None
        assert sorted(champion.aliases) == ["champion", "default"]
        found.merge_aliases(f"{name}@1", ["-champion"])
        assert found.champion(name) is None


def test_two_models_of_the_pipeline_are_not_guessed_between(tmp_path: Path) -> None:
    fill(tmp_path)
    shutil.copytree(tmp_path / "models" / model_id(tmp_path), tmp_path / "models" / "other")
    with reachable(tmp_path), pytest.raises(UserError, match="2 models in us-central1 have the name 'Pet images'"):
        of(tmp_path).find("Pet images")


def test_a_damaged_model_does_not_hide_the_others(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "models" / "no-files" / "1" / "model.json").write_text("{")
    with reachable(tmp_path):
        assert version(tmp_path, "Pet images", "2") == "2"
        with pytest.raises(UserError, match="no registered model"):
            of(tmp_path).version("no-files", "1")
