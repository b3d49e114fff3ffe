"""The local model registry: ids, versions and parents."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from localvertex.store import registry
from localvertex.store.model_versions import ModelVersions


def test_different_names_never_share_a_model(tmp_path: Path) -> None:
    ids = {registry.add(tmp_path, {"display_name": name}).model_id for name in ("a b", "a-b", "A b", "ä b", "../a b")}
    assert len(ids) == 5
    assert all((tmp_path / "models" / each / "1").is_dir() for each in ids)


def test_concurrent_uploads_get_different_versions_and_leave_no_temporary_files(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        versions = list(pool.map(lambda _: registry.add(tmp_path, {"display_name": "m"}).number, range(24)))
    assert sorted(versions) == list(range(1, 25))
    assert sorted(int(each.name) for each in (tmp_path / "models" / "m").iterdir()) == list(range(1, 25))


@pytest.mark.parametrize("parent", ["projects/p/locations/l/models/absent@1", "models/../../x", "nonsense"])
def test_a_parent_that_is_not_registered_is_refused(tmp_path: Path, parent: str) -> None:
    with pytest.raises(ValueError, match="is not in"):
        registry.add(tmp_path, {"display_name": "m"}, parent)


def added(work_dir: Path, *aliases: str) -> ModelVersions:
    version = registry.add(work_dir, {"display_name": "m"}, aliases=aliases)
    return ModelVersions(version.folder.parent)


def test_an_upload_takes_its_aliases_from_another_version(tmp_path: Path) -> None:
    assert added(tmp_path, "champion").aliases == {"default": "1", "champion": "1"}
    assert added(tmp_path).aliases == {"default": "1", "champion": "1"}
    assert added(tmp_path, "default", "champion").aliases == {"default": "3", "champion": "3"}
    with pytest.raises(ValueError, match="version alias '4'"):
        added(tmp_path, "champion", "4")
    assert ModelVersions.of(tmp_path, "m").numbers == ["1", "2", "3"]


def test_an_alias_that_is_given_and_removed_in_one_call_stays(tmp_path: Path) -> None:
    versions = added(tmp_path, "champion")
    added(tmp_path).merge("2", ["champion", "-champion", "new"])
    assert versions.aliases == {"default": "1", "champion": "1", "new": "2"}


@pytest.mark.parametrize("removed", [["3"], ["2", "3"]])
def test_a_number_is_not_given_twice(tmp_path: Path, removed: list[str]) -> None:
    for _ in range(3):
        versions = added(tmp_path)
    for number in removed:
        versions.remove(number)
    assert added(tmp_path).numbers[-1] == "4"


@pytest.mark.parametrize(
    ("file", "text", "aliases"),
    [
        # A version that was removed by hand has no alias, and the default is the oldest one that is left.
        ("aliases.json", '{"default": "7", "champion": "2"}', {"default": "1", "champion": "2"}),
        ("aliases.json", '{"champion": "7"}', {"default": "1"}),
        ("aliases.json", "{}", {"default": "1"}),
        ("change.json", "[]", {"default": "1", "champion": "2"}),
        ("change.json", '{"added": 3, "aliases": ["a"], "removed": {}}', {"default": "1", "champion": "2"}),
        ("change.json", '{"added": "", "aliases": [], "removed": {"../x": true}}', {"default": "1", "champion": "2"}),
    ],
)
def test_records_that_were_edited_by_hand_are_read(
    tmp_path: Path, file: str, text: str, aliases: dict[str, str]
) -> None:
    added(tmp_path)
    versions = added(tmp_path, "champion")
    (versions.folder / file).write_text(text)
    assert versions.aliases == aliases
    assert added(tmp_path, "champion").aliases == aliases | {"champion": "3"}
    assert not (versions.folder / "change.json").exists()


@pytest.mark.parametrize("text", ["{", "[]", '{"champion": 1}', '{"champion": ["1"]}', "[" * 100_000])
def test_damaged_aliases_are_an_error_of_one_line_and_nothing_is_added(tmp_path: Path, text: str) -> None:
    versions = added(tmp_path, "champion")
    (versions.folder / "aliases.json").write_text(text)
    before = sorted(versions.folder.iterdir())
    for change in (lambda: versions.aliases, lambda: added(tmp_path, "new"), lambda: versions.merge("1", ["new"])):
        with pytest.raises(ValueError, match=r"^[^\n]*aliases\.json is damaged: [^\n]*$"):
            change()
    assert sorted(versions.folder.iterdir()) == before
    assert (versions.folder / "aliases.json").read_text() == text
    assert versions.delete() == []


def test_a_version_without_its_entry_does_not_exist(tmp_path: Path) -> None:
    added(tmp_path)
    versions = added(tmp_path, "champion", "default")
    (versions.folder / "2" / "model.json").unlink()
    assert (versions.numbers, versions.aliases) == (["1"], {"default": "1"})
    with pytest.raises(LookupError, match="has no version 'champion'; it has 1"):
        versions.merge("champion", ["new"])
    assert registry.folder_of(tmp_path, "projects/p/locations/l/models/m@2") is None


def test_a_work_directory_that_was_moved_has_the_files_of_its_models(tmp_path: Path) -> None:
    (tmp_path / "weights").write_text("1")
    old, new = tmp_path / "old", tmp_path / "new"
    registry.add(old, {"display_name": "m", "artifact_uri": str(tmp_path / "weights")})
    registry.add(old, {"display_name": "m", "artifact_uri": "gs://bucket/weights"})
    old.rename(new)
    versions = ModelVersions.of(new, "m")
    assert Path(versions.content("1")["artifact_uri"]) == new / "models" / "m" / "1" / "model"
    assert Path(versions.content("1")["artifact_uri"]).read_text() == "1"
    assert versions.content("2")["artifact_uri"] == "gs://bucket/weights"


@pytest.mark.parametrize("name", ["api", "api/token", "models/../api/token", "link"])
def test_the_token_of_a_server_is_no_model(tmp_path: Path, name: str) -> None:
    for folder in ("api/customJobs/1", "models"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "api" / "token").write_text("secret")
    (tmp_path / "link").symlink_to("api")
    with pytest.raises(ValueError, match="the token and records of the server"):
        registry.add(tmp_path, {"display_name": "m", "artifact_uri": str(tmp_path / name)})
    assert [*(tmp_path / "models").iterdir()] == []
    assert registry.add(tmp_path, {"display_name": "m", "artifact_uri": str(tmp_path / "api/customJobs/1")}).number == 1
