"""Temporary folders that a killed process left are removed by a later one, and no others."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from localvertex._base.userinput import temporary
from localvertex.credentials import step_file

CODE = """
from localvertex._base.userinput.temporary import temporary_folder
with temporary_folder() as name, temporary_folder() as other:
    open(other + "/file", "w").close()
    print(name, other, flush=True)
    input()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


def grow_old(folder: Path) -> None:
    os.utime(folder, (0, 0))


def test_the_empty_folders_of_a_killed_process_are_removed(folder: Path) -> None:
    words = [sys.executable, "-c", CODE]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        empty, full = map(Path, process.stdout.readline().split())
        for each in (empty, full):
            grow_old(each)
        temporary.remove_left()
        assert empty.is_dir()
        process.send_signal(signal.SIGKILL)
    for each in (empty, full):
        grow_old(each)
    temporary.remove_left()
    assert [*folder.glob("*/*")] == [full]


def test_the_files_of_localvertex_itself_do_not_outlive_a_killed_run(folder: Path) -> None:
    """They have a token; a folder with anything else may be that of a step, and stays as it is."""
    contents = {"run": ["confined.json", "endpoint.json"], "step": ["confined.json", "endpoint.json", "mine"]}
    contents |= {"other": ["endpoint.json"], "empty": []}
    for name, files in contents.items():
        each = folder / f"{temporary._PREFIX}{name}"
        each.mkdir()
        for file in files:
            (each / file).touch()
        grow_old(each)
    temporary.remove_left(step_file.FILES)
    left = {path.name.removeprefix(temporary._PREFIX): sorted(os.listdir(path)) for path in folder.iterdir()}
    assert left == {"step": contents["step"], "other": contents["other"]}


def test_new_and_foreign_folders_and_links_stay(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with temporary.temporary_folder() as name:
        prefix = Path(name).name.rpartition("-")[0]
    assert not Path(name).exists()
    (folder / f"{prefix}-new").mkdir()
    for each in ("somebody", "localvertex-x"):
        (folder / each).mkdir()
        grow_old(folder / each)
    (folder / f"{prefix}-link").symlink_to(folder / "somebody")
    os.utime(folder / f"{prefix}-link", (0, 0), follow_symlinks=False)
    before = sorted(folder.iterdir())
    temporary.remove_left()
    assert sorted(folder.iterdir()) == before
    grow_old(folder / f"{prefix}-new")
    monkeypatch.setattr("os.geteuid", lambda: os.getuid() + 1)
    temporary.remove_left()
    assert sorted(folder.iterdir()) == before
