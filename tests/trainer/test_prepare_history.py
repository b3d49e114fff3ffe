"""The folder beside the pipeline root, edited, copied, or without permission: no traceback, no wrong dataset."""

import contextlib
import json
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

from localvertex._base.userinput.errors import UserError
from tests.support.growing import InBucket, Local, content, fill, png, run
from trainer.data.preparing import versions
from trainer.data.preparing.previous import history, rows
from trainer.data.preparing.previous.dataset import previous_of
from vertex_testing.cloud_storage.server import CloudStorage

_NOBODY = 65534


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> Iterator[Local]:
    """A source and its dataset in a folder that any user can write; the one of temporary files may be root's alone."""
    monkeypatch.setattr(rows, "SETTLING_NS", 0)
    monkeypatch.setattr(tempfile, "tempdir", "/dev/shm")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        os.chmod(folder, 0o777)
        place = Local(pathlib.Path(folder))
        fill(place)
        run(place, "one")
        yield place


@contextlib.contextmanager
def without_privileges() -> Iterator[None]:
    """Act as the user `nobody` if this is root, which may read everything."""
    is_root = os.geteuid() == 0
    try:
        os.seteuid(_NOBODY if is_root else os.geteuid())
    except OSError:
        pytest.skip("root cannot act as another user here")
    try:
        yield
    finally:
        os.seteuid(0 if is_root else os.geteuid())


def history_file(local: Local) -> pathlib.Path:
    (found,) = (local.folder / "root").rglob("latest.json")
    return found


def test_a_history_that_names_no_path_is_damaged(local: Local) -> None:
    (entry,) = json.loads(history_file(local).read_text())
    opened = history.History(str(history_file(local).parent))
    assert opened.read()
    for wrong in ("", "\0", "\ud800", "http://host/dataset", "/" + 5000 * "a"):
        history_file(local).write_text(json.dumps([entry | {"dataset": wrong}]))
        with pytest.raises(history.Unusable, match="is damaged"):
            opened.read()


def test_after_the_newest_dataset_is_lost_the_one_before_gives_images_and_splits(
    local: Local, capsys: pytest.CaptureFixture[str]
) -> None:
    local.write("source/a/new.png", png(9999))
    assert run(local, "two")["num_read"] == 1
    two = content(local, "two")
    shutil.rmtree(local.folder / "two")
    capsys.readouterr()
    assert run(local, "three")["num_read"] == 1
    assert content(local, "three") == two
    lines = [line for line in capsys.readouterr().err.splitlines() if "cannot be used" in line]
    assert lines == [
        f"note: the newest dataset cannot be used ({local.folder}/two/dataset.json is missing); the one before is used"
    ]
    shutil.rmtree(local.folder / "one")
    shutil.rmtree(local.folder / "three")
    assert run(local, "four")["num_read"] == 25
    assert f"({local.folder}/three/dataset.json is missing); all images are read again" in capsys.readouterr().err


def test_a_previous_dataset_without_permission_is_like_a_missing_one(local: Local) -> None:
    opened, scratch = history.History(str(history_file(local).parent)), local.folder / "scratch"
    for path in (history_file(local).parent.parent, history_file(local).parent, history_file(local)):
        path.chmod(0o755)
    scratch.mkdir()
    scratch.chmod(0o777)
    for hidden in (local.folder / "one", local.folder / "one/dataset.json"):
        hidden.chmod(0)
        message = "one/dataset.json cannot be read: permission denied"
        with without_privileges(), pytest.raises(history.Unusable, match=message):
            previous_of(opened, scratch, image_size=16)
        hidden.chmod(0o755)


def test_a_folder_that_cannot_be_used_is_refused_before_all_work(local: Local) -> None:
    state = history_file(local).parent
    (state / "parts").touch()
    with pytest.raises(UserError, match=rf"pipeline root=.*{state}/parts is not a folder"):
        run(local, "two")
    shutil.rmtree(state)
    state.touch()
    with pytest.raises(UserError, match=rf"pipeline root=.*{state} is not a folder"):
        run(local, "two")
    assert not (local.folder / "two.html").exists()


@pytest.mark.slow
def test_a_history_of_another_image_size_is_not_believed(local: Local, capsys: pytest.CaptureFixture[str]) -> None:
    first = history_file(local)
    run(local, "small", image_size=8)
    (second,) = set((local.folder / "root").rglob("latest.json")) - {first}
    expected = content(local, "small")
    shutil.copy(first, second)
    capsys.readouterr()
    assert run(local, "again", image_size=8)["num_read"] == 24
    assert f"{local.folder}/one has images of 16 pixels" in capsys.readouterr().err
    assert content(local, "again") == expected


def test_another_format_of_prepared_data_has_a_history_of_its_own(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def folder() -> str:
        return history.of(str(tmp_path), source="digits", image_size=16, max_examples=0).folder

    before = folder()
    monkeypatch.setattr(versions, "FORMAT", versions.FORMAT + 1)
    assert folder() != before


@pytest.mark.parametrize(("ctime_ns", "is_settled"), [(8 * 10**9, False), (8 * 10**9 + 1, True), (7 * 10**9, True)])
def test_times_of_whole_seconds_may_hide_a_change_for_longer(ctime_ns: int, is_settled: bool) -> None:
    identity: dict[str, Any] = {"size": 1, "ctime_ns": ctime_ns}
    assert rows._is_settled(identity, 9 * 10**9 + 5 * 10**8) == is_settled


def test_other_files_are_not_taken_for_a_dataset_that_was_never_published(local: Local) -> None:
    (entry,) = json.loads(history_file(local).read_text())
    killed = entry | {"dataset": f"{local.folder}/two", "is_published": False}
    history_file(local).write_text(json.dumps([killed, entry]))
    local.write("two/other.txt", b"of the user")
    with pytest.raises(UserError, match="exists and is not empty"):
        run(local, "two")
    assert local.paths("two") == ["other.txt"]


@pytest.mark.parametrize("output", ["two", "two/../root", "link"])
def test_a_pipeline_root_in_the_output_folder_is_refused_before_all_work(local: Local, output: str) -> None:
    (local.folder / "link").symlink_to(local.folder / "two")
    root = str(local.folder / ("root" if output.endswith("root") else "two/root"))
    (local.folder / "two").mkdir()
    with pytest.raises(UserError, match="is in the output folder"):
        run(local, "two", pipeline_root=root, output_directory=str(local.folder / output))
    assert list((local.folder / "two").iterdir()) == []


@pytest.mark.parametrize("output", ["gs://growing", "gs://growing/source"])
def test_a_dataset_never_replaces_the_images_of_a_bucket(
    server: CloudStorage, tmp_path: pathlib.Path, output: str
) -> None:
    place = InBucket(server)
    fill(place, 1)
    for root in ("", str(tmp_path / "root")):
        with pytest.raises(UserError, match="exists and is not empty"):
            run(place, "one", output_directory=output, pipeline_root=root, report_path=str(tmp_path / "report.html"))
    assert place.paths("source") == ["a/0.png", "b/0.png"]
