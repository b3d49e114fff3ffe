"""Registered models of a local run: those that `localvertex` has registered in the work directory."""

import shutil
from pathlib import Path

import pytest

from localvertex.state import registry
from localvertex.state.model_versions import ModelVersions
from training_job import model_registry
from vertex_gpu_training.userinput.errors import UserError


@pytest.fixture
def work_dir(tmp_path: Path) -> Path:
    """A work directory with two versions of a model, the first of which is the champion, and another model."""
    for number in (1, 2):
        files = tmp_path / f"files-{number}"
        files.mkdir()
        (files / "saved_model.pb").write_text(str(number))
        registry.add(tmp_path, {"display_name": "Pet images", "artifact_uri": str(files)})
    registry.add(tmp_path, {"display_name": "elsewhere", "artifact_uri": "gs://bucket/model"})
    registry.add(tmp_path, {"display_name": "no-files"})
    (model_id,) = [each.name for each in (tmp_path / "models").iterdir() if each.name.startswith("pet")]
    ModelVersions.of(tmp_path, model_id).merge("2", ["champion"])
    return tmp_path


def version(work_dir: Path, name: str, version: str) -> str:
    folder = model_registry.of(f"{work_dir}/", "us-central1").folder(name, version)
    return (Path(folder) / "saved_model.pb").read_text()


def test_a_version_is_found_by_number_and_by_alias(work_dir: Path) -> None:
    assert [version(work_dir, "Pet images", each) for each in ("1", "2", "champion", "default")] == ["1", "2", "2", "1"]
    (model_id,) = [each.name for each in (work_dir / "models").iterdir() if each.name.startswith("pet")]
    assert version(work_dir, model_id, "champion") == "2"
    ModelVersions.of(work_dir, model_id).merge("1", ["champion"])
    assert version(work_dir, model_id, "champion") == "1"
    assert model_registry.of(str(work_dir), "r").folder("elsewhere", "1") == "gs://bucket/model"


@pytest.mark.parametrize(
    ("name", "version", "message"),
    [
        ("Pet images", "3", "has no version '3'; it has 1, 2, champion"),
        ("Pet images", "best", "has no version 'best'"),
        ("pets", "1", "0 models of this name"),
        ("../models/elsewhere", "1", "0 models of this name"),
        ("no-files", "1", "has no files"),
    ],
)
def test_what_is_not_there_is_refused(work_dir: Path, name: str, version: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        model_registry.of(str(work_dir), "us-central1").folder(name, version)
    assert "\n" not in str(caught.value)


def test_damaged_aliases_are_not_overlooked(work_dir: Path) -> None:
    (model_id,) = [each.name for each in (work_dir / "models").iterdir() if each.name.startswith("pet")]
    (work_dir / "models" / model_id / "aliases.json").write_text('{"champ')
    with pytest.raises(UserError, match=r"aliases.json is damaged"):
        model_registry.of(str(work_dir), "us-central1").folder("Pet images", "1")


def test_a_work_directory_that_was_moved_has_its_own_files(
    work_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    moved = tmp_path_factory.mktemp("moved") / "runs"
    shutil.copytree(work_dir, moved)
    for file in work_dir.rglob("saved_model.pb"):
        file.unlink()
        file.write_text("of another registry, now in the old place")
    assert [version(moved, "Pet images", each) for each in ("1", "champion")] == ["1", "2"]
    assert model_registry.of(str(moved), "r").folder("elsewhere", "1") == "gs://bucket/model"


@pytest.mark.parametrize("content", ["{", "[]", "\udcff", "", None])
def test_a_damaged_model_does_not_hide_the_others(work_dir: Path, content: str | None) -> None:
    damaged = work_dir / "models" / "no-files" / "1" / "model.json"
    damaged.unlink()
    damaged.mkdir() if content is None else damaged.write_text(content, errors="surrogateescape")
    assert version(work_dir, "Pet images", "2") == "2"
    with pytest.raises(UserError, match=r"0 models of this name in .*; the names of no-files cannot be read"):
        version(work_dir, "pets", "1")
    with pytest.raises(UserError, match=r"no-files/1/model.json is damaged"):
        version(work_dir, "no-files", "1")


def test_folders_that_are_not_versions_are_left_out(work_dir: Path) -> None:
    files = work_dir / "models" / "elsewhere"
    (files / "\N{SUPERSCRIPT TWO}").mkdir()
    (files / "\N{SUPERSCRIPT TWO}" / "model.json").write_text("{}")
    assert model_registry.of(str(work_dir), "r").folder("elsewhere", "1") == "gs://bucket/model"
