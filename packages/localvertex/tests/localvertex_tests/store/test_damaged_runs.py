"""Damaged or moved runs: one line each, and other runs are unaffected."""

import shutil
import subprocess
from pathlib import Path

from kfp import dsl

from vertex_testing.runs import Command, Compile


@dsl.component(base_image="python:3.11", install_kfp_package=False)
def speak(metrics: dsl.Output[dsl.Metrics], model: dsl.Output[dsl.Model]) -> None:
    print("spoken")
    with open(model.path, "w") as file:
        file.write("model")


@dsl.pipeline(name="speaking")
def speaking() -> None:
    speak()


def one_line(done: subprocess.CompletedProcess[str], code: int, text: str) -> None:
    assert done.returncode == code, done.stdout + done.stderr
    assert text in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_unreadable_records_are_listed_reported_and_cleaned(
    compiled: Compile, command: Command, tmp_path: Path
) -> None:
    compiled(speaking, "pipeline.json")
    assert command("run", "pipeline.json", "--run-id", "good").returncode == 0
    for name, content in {"torn": "{", "poor": '{"state": "FAILED"}', "odd": "[]"}.items():
        (tmp_path / "runs" / name).mkdir()
        (tmp_path / "runs" / name / "run.json").write_text(content)
    (tmp_path / "runs" / "huge").mkdir()
    # A damaged file system can give a file any length; reading this one would need all memory of a laptop.
    with (tmp_path / "runs" / "huge" / "run.json").open("wb") as file:
        file.truncate(1 << 40)
    listed = command("list")
    assert listed.returncode == 0
    assert "good" in listed.stdout
    assert listed.stdout.count("UNREADABLE") == 4
    for name in ("torn", "poor", "odd", "huge"):
        one_line(command("show", name), 2, "is not the record of a run")
        one_line(command("logs", name), 2, "is not the record of a run")
        assert command("clean", name, "--yes").returncode == 0
        assert not (tmp_path / "runs" / name).exists()
    assert command("show", "latest").returncode == 0


def test_a_missing_log_is_one_line(compiled: Compile, command: Command, tmp_path: Path) -> None:
    compiled(speaking, "pipeline.json")
    assert command("run", "pipeline.json", "--run-id", "good").returncode == 0
    (tmp_path / "runs" / "good" / "speak" / "log.txt").unlink()
    one_line(command("logs", "good", "speak"), 2, "cannot read the log ")


def test_a_moved_work_directory_shows_where_the_report_is_now(
    compiled: Compile, command: Command, tmp_path: Path
) -> None:
    compiled(speaking, "pipeline.json")
    assert command("run", "pipeline.json", "--run-id", "good").returncode == 0
    shutil.move(tmp_path / "runs", tmp_path / "elsewhere")
    shown = command("show", "latest", "--work-dir", str(tmp_path / "elsewhere"))
    assert f"report: {tmp_path}/elsewhere/good/run.html" in shown.stdout


def test_an_empty_work_directory_is_refused(compiled: Compile, command: Command, tmp_path: Path) -> None:
    compiled(speaking, "pipeline.json")
    done = command("run", "pipeline.json", "--work-dir", "")
    assert done.returncode == 2
    assert "give a folder" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["pipeline.json"]


def test_a_missing_parameter_file_is_not_reported_as_a_pipeline(compiled: Compile, command: Command) -> None:
    compiled(speaking, "pipeline.json")
    text = "no.json cannot be read: no such file or directory"
    one_line(command("run", "pipeline.json", "--parameter-file", "no.json"), 2, text)


def test_a_deep_entry_of_the_registry_does_not_stop_clean(compiled: Compile, command: Command, tmp_path: Path) -> None:
    compiled(speaking)
    assert command("run", "pipeline.json", "--run-id", "first").returncode == 0
    entry = tmp_path / "runs" / "models" / "m" / "1" / "model.json"
    entry.parent.mkdir(parents=True)
    entry.write_text("[" * 100_000)
    cleaned = command("clean", "--yes")
    assert (cleaned.returncode, cleaned.stderr) == (0, "")
    assert not (tmp_path / "runs" / "first").exists()
