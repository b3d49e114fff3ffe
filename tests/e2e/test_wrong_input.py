"""Wrong input to the whole pipeline: one line with what to do, the exit code, and nothing half-written."""

import pathlib

import numpy as np
import pytest
from PIL import Image

from localvertex.__main__ import main
from tests.e2e.conftest import Run, Runner
from vertex_testing.in_process import call


def write_images(folder: pathlib.Path, count: int, seed: int) -> None:
    folder.mkdir(parents=True)
    random = np.random.default_rng(seed)
    for index in range(count):
        Image.fromarray(random.integers(0, 255, (12, 10, 3), dtype=np.uint8)).save(folder / f"{index}.png")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["missing", "empty", "one class", "mostly corrupt"])
def test_a_source_that_cannot_be_used_fails_in_prepare_with_one_line(
    run: Runner, tmp_path: pathlib.Path, kind: str
) -> None:
    source = tmp_path / "my photos"
    if kind == "empty":
        source.mkdir()
    if kind == "one class":
        write_images(source / "cats", 4, 0)
    if kind == "mostly corrupt":
        write_images(source / "cats", 4, 0)
        write_images(source / "dogs", 4, 1)
        for path in source.glob("*/[0-2].png"):
            path.write_bytes(b"not an image")
    done = run(tmp_path / "runs", "wrong", source=source)
    assert done.exit_code == 1
    assert done.task("prepare")["state"] == "FAILED"
    assert done.task("prepare")["exit_code"] == 2
    assert done.task("summary")["state"] == "SUCCEEDED"
    log = (tmp_path / "runs" / "wrong" / done.task("prepare")["log"]).read_text()
    assert "Traceback" not in log
    (line,) = [line for line in log.splitlines() if line.startswith("error: ")]
    assert line.removeprefix("error: ") in done.output
    assert "my photos" in line
    assert not list((tmp_path / "runs" / "wrong").rglob("dataset*/*"))


@pytest.mark.slow
def test_dataflow_is_refused_before_any_step_works(run: Runner, tmp_path: pathlib.Path) -> None:
    done = run(tmp_path / "runs", "dataflow", prepare_engine="dataflow")
    assert done.exit_code == 1
    assert done.task("prepare")["exit_code"] == 2
    (line,) = [line for line in done.output.splitlines() if "prepare_engine is 'dataflow'" in line][:1]
    assert "which starts machines in Google Cloud; a local run does not" in line
    assert done.task("plan")["state"] not in ("SUCCEEDED", "RUNNING", "FAILED")
    assert not list((tmp_path / "runs" / "dataflow").rglob("dataset*/*"))


def write_with_a_torn_one(source: pathlib.Path) -> None:
    write_images(source / "cats", 60, 0)
    write_images(source / "dogs", 60, 1)
    (source / "dogs" / "torn.jpg").write_bytes(b"\xff\xd8\xff\xe0 torn")


def assert_it_is_skipped_counted_and_named(done: Run, run_folder: pathlib.Path) -> None:
    assert done.artifact("prepare", "dataset")["metadata"]["num_bad_files"] == 1
    assert done.artifact("prepare", "dataset")["metadata"]["num_examples"] == 120
    assert "torn.jpg" in (run_folder / "run.html").read_text()


@pytest.mark.soak
@pytest.mark.slow
def test_a_corrupt_image_does_not_end_a_run(run: Runner, tmp_path: pathlib.Path) -> None:
    write_with_a_torn_one(tmp_path / "photos")
    few = {"max_steps": 2, "global_batch_size": 8, "minimum_score": 1}
    done = run(tmp_path / "runs", "torn", source=tmp_path / "photos", **few)
    assert done.exit_code == 0, done.output
    assert_it_is_skipped_counted_and_named(done, tmp_path / "runs" / "torn")
    # Two steps on noise do not reach an accuracy of 1: evaluated, neither exported nor registered.
    assert not [*(tmp_path / "runs" / "models").glob("*")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--parameter", "epoch=3"], "epochs"),
        (["--parameter", "epochs=many"], "epochs"),
        (["--parameter", "epochs"], "NAME=VALUE"),
        (["--parameter-file", "nowhere.json"], "nowhere.json"),
        (["--run-id", "../elsewhere"], "../elsewhere"),
    ],
)
def test_a_wrong_argument_is_refused_before_anything_runs(
    compiled_training: pathlib.Path, tmp_path: pathlib.Path, arguments: list[str], said: str
) -> None:
    done = call(main, ["run", compiled_training, *arguments], cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "image_training.json"),
        ('{"root": ', "line"),
        ("[]", "pipeline"),
        ("\x00\x01\x02", "image_training.json"),
    ],
)
def test_a_file_that_is_not_a_pipeline_is_refused(tmp_path: pathlib.Path, content: str | None, said: str) -> None:
    path = tmp_path / "image_training.json"
    if content is not None:
        path.write_text(content)
    done = call(main, ["run", path], cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.slow
def test_a_corrupt_image_is_no_error_and_a_batch_larger_than_the_data_fails_in_plan_before_machines_are_requested(
    run: Runner, tmp_path: pathlib.Path
) -> None:
    write_with_a_torn_one(tmp_path / "photos")
    done = run(tmp_path / "runs", "three", source=tmp_path / "photos", global_batch_size=1000)
    assert done.exit_code == 1
    assert_it_is_skipped_counted_and_named(done, tmp_path / "runs" / "three")
    assert done.task("plan")["exit_code"] == 2
    assert "global_batch_size=1000" in done.output
    assert not [*(tmp_path / "runs" / "training").glob("*")]


@pytest.mark.slow
def test_machines_that_vertex_would_refuse_fail_in_prepare_before_an_image_is_read(
    run: Runner, tmp_path: pathlib.Path
) -> None:
    done = run(tmp_path / "runs", "three", source=tmp_path / "none", accelerator_count=3)
    assert done.exit_code == 1
    assert done.task("prepare")["exit_code"] == 2
    assert "3 x NVIDIA_L4 on g2-standard-8" in done.output
    assert "g2-standard-24 with 2 x NVIDIA_L4" in done.output
