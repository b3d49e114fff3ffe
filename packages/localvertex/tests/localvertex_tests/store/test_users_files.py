"""Files of the user are neither moved, changed nor deleted; a registered model outlives the run that made it."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.types import artifact_types
from google_cloud_pipeline_components.v1.model import ModelUploadOp
from kfp import dsl

from localvertex.store import copies, registry
from vertex_testing.runs import STEP, Command, Compile, Execute, FindTask


def contents(folder: Path) -> dict[str, tuple[Any, ...]]:
    """Return what a user would notice of a folder: names, contents, inodes, modes, modification times."""
    found = {}
    for path in sorted(folder.rglob("*")):
        now = path.lstat()
        data = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        found[str(path.relative_to(folder))] = (data, now.st_ino, now.st_mode, now.st_mtime_ns, now.st_nlink)
    return found


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """Return a folder of the user's, with links and a file that cannot be written."""
    folder = tmp_path / "my data"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "a.txt").write_text("mine")
    (folder / "deep" / "a.txt").chmod(0o444)
    (folder / "link.txt").symlink_to("deep/a.txt")
    (folder / "deep" / "up").symlink_to("..")
    (folder / "dangling.txt").symlink_to("absent")
    return folder


@dsl.component(**STEP)
def point_to(place: str, data: dsl.Output[dsl.Dataset]) -> None:
    data.set_path(place)


@dsl.component(**STEP)
def change(data: dsl.Input[dsl.Dataset]) -> str:
    import os

    with open(os.path.join(data.path, "deep", "a.txt"), "a") as file:
        file.write(" and yours")
    with open(os.path.join(data.path, "link.txt")) as file:
        return file.read()


@dsl.pipeline(name="points")
def points(place: str) -> None:
    change(data=point_to(place=place).outputs["data"])


def test_a_folder_of_the_users_at_a_custom_path_is_copied(execute: Execute, task: FindTask, mine: Path) -> None:
    before = contents(mine)
    record = execute(points, {"place": str(mine)})
    assert record["state"] == "SUCCEEDED", record["error"]
    assert task(record, "change")["outputs"]["parameters"]["Output"] == "mine and yours"
    assert contents(mine) == before


@dsl.component(**STEP)
def point_beside(how: str, data: dsl.Output[dsl.Dataset]) -> None:
    import os
    import tempfile

    own, path = data.path, ""
    if how == "temporary":
        path = os.path.join(tempfile.mkdtemp(), "data")
    elif how == "inside":
        os.mkdir(own)
        path = os.path.join(own, "part")
    elif how == "same":
        path = own
    with open(path, "w") as file:
        file.write(how)
    data.set_path(path)


@dsl.component(**STEP)
def read(data: dsl.Input[dsl.Dataset]) -> str:
    with open(data.path) as file:
        return file.read()


@dsl.pipeline(name="beside")
def beside(how: str) -> None:
    read(data=point_beside(how=how).outputs["data"])


@pytest.mark.parametrize("how", ["temporary", "inside", "same"])
def test_what_the_step_itself_wrote_is_found_at_any_custom_path(execute: Execute, task: FindTask, how: str) -> None:
    record = execute(beside, {"how": how})
    assert record["state"] == "SUCCEEDED", record["error"]
    assert task(record, "read")["outputs"]["parameters"]["Output"] == how


def test_a_folder_that_contains_the_run_or_a_pipe_is_an_error_and_stays(
    execute: Execute, mine: Path, work_dir: Path, tmp_path: Path
) -> None:
    os.mkfifo(mine / "pipe.fifo")
    (tmp_path / "note.txt").write_text("note")
    for place in (tmp_path, mine):
        record = execute(points, {"place": str(place)}, use_cache=False)
        assert record["state"] == "FAILED"
        assert "cannot be copied" in record["error"]
        assert "\n" not in record["error"]
    assert (tmp_path / "note.txt").read_text() == "note"
    assert (mine / "deep" / "a.txt").read_text() == "mine"
    assert not list(work_dir.glob("*/point-to/data")) + list(work_dir.glob("*/point-to/.data.partial"))


def test_links_out_of_a_folder_are_followed_and_never_in_circles(tmp_path: Path, mine: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "to-mine").symlink_to(mine)
    (source / "file").symlink_to(mine / "deep" / "a.txt")
    (mine / "back").symlink_to(source)
    copies.copy(source, tmp_path / "copy", link_below=tmp_path / "source")
    assert (tmp_path / "copy" / "to-mine" / "deep" / "a.txt").read_text() == "mine"
    assert not (tmp_path / "copy" / "to-mine").is_symlink()
    assert (tmp_path / "copy" / "file").stat().st_nlink == 1
    assert len(list((tmp_path / "copy").rglob("*"))) < 12


@dsl.component(**STEP)
def save(words: str, model: dsl.Output[dsl.Model]) -> str:
    import os

    os.makedirs(os.path.join(model.path, "variables"))
    with open(os.path.join(model.path, "variables", "weights"), "w") as file:
        file.write(words)
    return model.path


@dsl.pipeline(name="upload")
def upload(folder: str) -> None:
    imported = dsl.importer(
        artifact_uri=folder,
        artifact_class=artifact_types.UnmanagedContainerModel,
        metadata={"containerSpec": {"imageUri": "serving:1"}},
    )
    ModelUploadOp(
        display_name="m", unmanaged_container_model=imported.output, location="{{$.pipeline_google_cloud_location}}"
    ).set_caching_options(False)


@dsl.pipeline(name="registers")
def registers(words: str = "weights", folder: str = "") -> None:
    saved = save(words=words)
    with dsl.If(folder == ""):
        upload(folder=saved.outputs["Output"])
    with dsl.Else():
        upload(folder=folder)


def model_of(work_dir: Path, version: int = 1) -> Any:
    return json.loads((work_dir / "models" / "m" / str(version) / "model.json").read_text())


def test_a_registered_model_outlives_its_run(
    execute: Execute, command: Command, work_dir: Path, tmp_path: Path
) -> None:
    execute(registers, run_id="first")
    model = model_of(work_dir)
    assert model["artifact_uri"] == str(work_dir / "models" / "m" / "1" / "model")
    assert model["source_uri"] == str(work_dir / "first" / "save" / "model")
    weights = Path(model["artifact_uri"]) / "variables" / "weights"
    assert weights.samefile(work_dir / "first" / "save" / "model" / "variables" / "weights")
    done = command("clean", "--yes")
    assert done.returncode == 0, done.stderr
    assert not (work_dir / "first").exists()
    assert weights.read_text() == "weights"
    assert os.listdir(work_dir / "models" / "m") == ["1"]


def test_a_model_of_the_users_is_copied_and_not_linked(execute: Execute, work_dir: Path, mine: Path) -> None:
    before = contents(mine)
    assert execute(registers, {"folder": str(mine)})["state"] == "SUCCEEDED"
    copied = Path(model_of(work_dir)["artifact_uri"]) / "deep" / "a.txt"
    assert copied.read_text() == "mine"
    copied.write_text("changed")
    assert contents(mine) == before


def test_a_model_that_contains_the_registry_is_used_where_it_is(
    execute: Execute, work_dir: Path, tmp_path: Path
) -> None:
    record = execute(registers, {"folder": str(tmp_path)})
    assert record["state"] == "SUCCEEDED", record["error"]
    assert model_of(work_dir)["artifact_uri"] == str(tmp_path)
    assert [text for text in record["warnings"] if "contains the work folder" in text]


def test_a_model_that_cannot_be_copied_is_not_registered(work_dir: Path, mine: Path) -> None:
    os.mkfifo(mine / "pipe")
    with pytest.raises(OSError, match="neither a file nor a folder"):
        registry.add(work_dir, {"display_name": "m", "artifact_uri": str(mine)})
    assert os.listdir(work_dir / "models") == []


def test_clean_asks_and_has_a_dry_run(compiled: Compile, command: Command, tmp_path: Path) -> None:
    compiled(registers)
    assert command("run", "pipeline.json", "--run-id", "first").returncode == 0
    refused = command("clean")
    assert refused.returncode == 2
    assert "add --yes" in refused.stderr
    dry = command("clean", "--dry-run")
    assert (dry.returncode, dry.stdout) == (0, "would remove runs/first\nnothing was removed\n")
    assert (tmp_path / "runs" / "first" / "run.json").is_file()
    for answer, is_kept in ((b"\n", True), (b"no\n", True), (b"y\n", False)):
        assert at_terminal(tmp_path, answer, "clean") == 0
        assert (tmp_path / "runs" / "first").exists() == is_kept


def at_terminal(folder: Path, answer: bytes, *words: str) -> int:
    ours, theirs = pty.openpty()
    program = [sys.executable, "-m", "localvertex", *words]
    with subprocess.Popen(program, cwd=folder, stdin=theirs, stdout=subprocess.PIPE) as process:
        os.write(ours, answer)
        output, _ = process.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    assert b"remove all of these? [y/N]" in output
    return process.returncode


def test_clean_keeps_what_another_run_refers_to(execute: Execute, command: Command, work_dir: Path) -> None:
    execute(registers, run_id="first")
    execute(registers, run_id="second")  # Its step `save` is taken from the cache.
    refused = command("clean", "first", "--yes")
    assert refused.returncode == 2
    assert "first cannot be removed: run second refers to its files" in refused.stderr
    assert (work_dir / "first" / "save" / "model").is_dir()
    assert command("clean", "second", "--yes").returncode == 0
    execute(registers, run_id="third")
    assert command("clean", "first", "third", "--yes").returncode == 0
    assert sorted(os.listdir(work_dir)) == [".localvertex", "models"]


def test_clean_keeps_the_files_of_a_model_that_was_registered_without_a_copy(
    execute: Execute, command: Command, work_dir: Path
) -> None:
    execute(registers, run_id="first")
    path = work_dir / "models" / "m" / "1" / "model.json"
    old = {key: value for key, value in model_of(work_dir).items() if key != "source_uri"}
    path.write_text(json.dumps(old | {"artifact_uri": str(work_dir / "first" / "save" / "model")}))
    done = command("clean", "--yes")
    assert "keeping runs/first: model m@1 refers to its files" in done.stdout
    assert (work_dir / "first" / "run.json").is_file()


def test_clean_never_deletes_what_localvertex_did_not_make(execute: Execute, command: Command, work_dir: Path) -> None:
    execute(registers, run_id="first")
    (work_dir / "first" / "notes.txt").write_text("mine")
    (work_dir / "first" / "plots").mkdir()
    (work_dir / "first" / "plots" / "loss.png").write_text("mine")
    (work_dir / "other").mkdir()
    (work_dir / "other" / "run.json").write_text('{"tool": "another"}')
    (work_dir / "other" / "weights").write_text("mine")
    done = command("clean", "--yes")
    assert "removed the run runs/first, but not notes.txt, plots in it" in done.stdout
    assert "keeping runs/other: its record cannot be read" in done.stdout
    assert sorted(os.listdir(work_dir / "first")) == ["notes.txt", "plots"]
    assert sorted(os.listdir(work_dir / "other")) == ["run.json", "weights"]
    assert command("clean", "other", "--yes").returncode == 0
    assert os.listdir(work_dir / "other") == ["weights"]
