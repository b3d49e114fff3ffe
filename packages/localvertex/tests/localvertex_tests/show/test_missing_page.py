"""The page of a run cannot be written: the run has its result, and one line says why there is no page."""

import os
from pathlib import Path

import pytest
from kfp import dsl

from localvertex.show import report
from vertex_testing.html import report_data
from vertex_testing.runs import STEP, Command, Compile


@dsl.component(**STEP)
def speak(folder: str, fails: bool) -> None:
    import os

    if folder:
        os.makedirs(f"{folder}/runs/r/run.html/in-the-way")
    if fails:
        raise ValueError("no images")


@dsl.component(**STEP)
def look(folder: str) -> None:
    import os

    print("page:", os.path.exists(f"{folder}/runs/r/run.html"))
    if not os.path.exists(f"{folder}/go"):
        raise ValueError("not yet")


@dsl.pipeline(name="looking")
def looking(folder: str) -> None:
    look(folder=folder).set_caching_options(False)


@dsl.pipeline(name="speaking")
def speaking(folder: str = "", fails: bool = False) -> None:
    speak(folder=folder, fails=fails).set_caching_options(False)


@pytest.mark.parametrize(("fails", "code", "state"), [("false", 0, "SUCCEEDED"), ("true", 1, "FAILED")])
def test_a_folder_in_its_place_changes_nothing_about_the_run(
    compiled: Compile, command: Command, tmp_path: Path, fails: str, code: int, state: str
) -> None:
    # Behind the mask, a step cannot write beside the record of its run.
    (tmp_path / "localvertex.toml").write_text('sandbox = "none"\n')
    file = compiled(speaking)
    done = command("run", file, "--run-id", "r", "-p", f"folder={tmp_path}", "-p", f"fails={fails}")
    assert (done.returncode, done.stderr) == (code, "")
    said = [line for line in done.stdout.splitlines() if "run.html" in line]
    assert len(said) == 1
    assert said[0].startswith(f"warning: {tmp_path}/runs/r/run.html was not written (IsADirectoryError: ")
    assert said[0].endswith("); run.json has everything")
    assert f"r: {state}" in done.stdout
    assert command("show", "r").returncode == 0


def test_a_defect_while_it_is_rendered_is_one_line_and_leaves_no_page_of_an_earlier_start(
    compiled: Compile, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, page = compiled(speaking), tmp_path / "runs" / "r" / "run.html"
    assert command("run", file, "--run-id", "r", "-p", "fails=true").returncode == 1
    assert page.is_file()

    def defect(*_: object) -> Path:
        page.write_text("half of it")
        raise KeyError("two\nlines")

    monkeypatch.setattr(report, "write", defect)
    done = command("run", "--resume", "r")
    assert (done.returncode, done.stderr) == (1, "")
    assert [line for line in done.stdout.splitlines() if "run.html" in line] == [
        f"warning: {page} was not written (KeyError: 'two\\nlines'); run.json has everything"
    ]
    assert not os.path.lexists(page)


def test_a_resumed_run_has_no_page_of_its_earlier_start_while_it_runs(
    compiled: Compile, command: Command, tmp_path: Path
) -> None:
    page = tmp_path / "runs" / "r" / "run.html"
    assert command("run", compiled(looking), "--run-id", "r", "-p", f"folder={tmp_path}").returncode == 1
    assert report_data(page)["run"]["state"] == "FAILED"
    (tmp_path / "go").touch()
    assert command("run", "--resume", "r").returncode == 0
    assert (tmp_path / "runs" / "r" / "look" / "log.txt").read_text().count("page: False\n") == 2
    assert report_data(page)["run"]["state"] == "SUCCEEDED"
