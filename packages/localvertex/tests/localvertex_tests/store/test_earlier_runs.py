"""Runs that were made before there was a journal are listed, shown, resumed and cleaned (tests/data/earlier_runs)."""

import json
import shutil
from pathlib import Path

import pytest

import localvertex
from vertex_testing.runs import Command

DATA = Path(__file__).parents[2] / "data" / "earlier_runs" / "work_dir"

STATES = {
    "succeeded": "SUCCEEDED",
    "cached": "SUCCEEDED",
    "failed": "FAILED",
    "killed": "FAILED",
    "cancelled": "CANCELLED",
    "custom-job": "SUCCEEDED",
}


@pytest.fixture(autouse=True)
def earlier(tmp_path: Path) -> Path:
    """Return a copy of the work directory, as if the runs had been made there."""
    folder = tmp_path / "runs"
    shutil.copytree(DATA, folder)
    words = {"@WORK_DIR@": str(folder), "@FOLDER@": str(tmp_path)}
    for path in [each for each in folder.rglob("*") if each.is_file()]:
        text = path.read_text()
        for word, value in words.items():
            text = text.replace(word, value)
        path.write_text(text)
    return folder


def test_they_are_listed_with_their_states(command: Command) -> None:
    lines = {line.split()[0]: line.split()[1] for line in command("list").stdout.splitlines()[1:]}
    assert lines == STATES


def test_they_are_shown_with_their_logs(command: Command) -> None:
    for run, state in STATES.items():
        shown = command("show", run)
        assert (shown.returncode, shown.stderr) == (0, "")
        assert f"{run}: {state}" in shown.stdout
    assert "accuracy = 0.5" in command("show", "cached").stdout
    assert "the process that ran it was killed" in command("show", "killed").stdout
    assert "RuntimeError: repaired is missing" in command("show", "failed").stdout
    assert "RuntimeError: repaired is missing" in command("logs", "failed", "need").stdout
    assert "trained" in command("logs", "custom-job").stdout


@pytest.mark.parametrize(
    ("run", "there", "restored", "repeated"),
    [
        ("failed", "repaired", {"prepare": "first"}, ["third"]),
        ("killed", "go", {"prepare": "begun", "0": "a", "1": "b", "2": "c"}, ["ended"]),
        ("cancelled", "go", {"prepare": "begun", "0": "a", "1": "b", "2": "c"}, ["ended"]),
    ],
)
def test_they_are_resumed_without_their_finished_steps(
    earlier: Path, run: str, there: str, restored: dict[str, str], repeated: list[str]
) -> None:
    before = json.loads((earlier / run / "run.json").read_text())
    (earlier / there).touch()
    record = localvertex.resume(run, options=localvertex.Options(work_dir=earlier))
    assert record["state"] == "SUCCEEDED"
    kept = {each["path"]: each for each in record["tasks"] if each["restored"]}
    names = {path.split("/")[1 if "/" in path else 0]: each for path, each in kept.items()}
    assert {name: each["outputs"]["parameters"]["Output"] for name, each in names.items()} == restored
    assert (earlier / "steps.txt").read_text().split() == repeated
    outputs = {each["path"]: each["outputs"] for each in before["tasks"]}
    assert all(each["outputs"] == outputs[path] for path, each in kept.items())
    assert (record["uuid"], record["create_time"]) == (before["uuid"], before["create_time"])
    assert len(record["resume_times"]) == 1


def test_one_that_succeeded_is_only_shown_when_it_is_resumed(earlier: Path) -> None:
    for run in ("succeeded", "cached", "custom-job"):
        content = (earlier / run / "run.json").read_text()
        assert localvertex.resume(run, options=localvertex.Options(work_dir=earlier)) == json.loads(content)
        assert (earlier / run / "run.json").read_text() == content


def test_they_are_cleaned_except_those_that_others_refer_to(command: Command, earlier: Path) -> None:
    done = command("clean", "succeeded", "--yes")
    assert done.returncode == 2
    assert "run cached refers to its files" in done.stderr
    assert command("clean", "cached", "--yes").returncode == 0
    assert command("clean", "--yes").returncode == 0
    assert list(earlier.iterdir()) == []
