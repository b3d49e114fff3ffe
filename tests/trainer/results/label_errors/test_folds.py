"""Folds of the training split, and the command that trains on them."""

import collections
import json
import shlex
import signal
import tempfile
import time
from pathlib import Path

import psutil
import pytest
from PIL import Image

from localvertex_base.userinput.errors import UserError
from tests.support.modules import call_module, run_module, start_module
from tests.test_docs import commands
from trainer.data import dataset
from trainer.data.dataset import Dataset
from trainer.results.label_errors import folds

COMMAND = "trainer.results.label_errors"


def names(data: Dataset, split: str) -> set[str]:
    return {record.file_name for record in data.records(split)}


def test_each_training_image_is_checked_once_by_a_model_without_it(digits: Dataset, tmp_path: Path) -> None:
    made = [dataset.load(folder) for folder in folds.write(digits, digits, tmp_path, 3)]
    training = names(digits, "train")
    checked = collections.Counter(name for fold in made for name in names(fold, "test"))
    assert set(checked) == training
    assert set(checked.values()) == {1}
    for fold in made:
        assert names(fold, "train") == training - names(fold, "test")
        assert names(fold, "validation") == names(digits, "validation")
        fold.check_shards("train", "validation", "test")
        # Images of equal content are in one fold, or a model would have seen what it checks.
        hashes = [{each.figures.content_hash for each in fold.records(split)} for split in ("train", "test")]
        assert not hashes[0] & hashes[1]
    assert len({fold.fingerprint for fold in made} | {digits.fingerprint}) == 4


def test_too_few_images_for_the_folds_are_refused(digits: Dataset, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="232 training images are too few for 100 folds; give fewer"):
        folds.write(digits, digits, tmp_path, 100)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--folds=1"], 2, "--folds=1 is out of range; expected 2 to 20"),
        (["--folds=2", "--max-minutes=nan"], 2, "--max-minutes=nan is out of range"),
        (["--folds=2", "--global-batch-size=200"], 2, "global_batch_size=200 is more than the 116 images"),
        (["--folds=2", "--max-minutes=0.0001"], 1, "0 of 2 folds were trained in 0.0001 minutes; give fewer --epochs"),
        (["--report=./x", "--predictions=x"], 2, "--predictions='x' is the file of the report; give another file"),
        (["--folds=2", "--report=/proc/x"], 2, "--report='/proc/x' cannot be written"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    digits_directory: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    code: int,
    message: str,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    done = call_module(f"{COMMAND}.__main__", str(digits_directory), f"--report={tmp_path}/report.html", *words)
    assert (done.returncode, done.stderr.count("\n")) == (code, 1), done.stderr
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_set_that_is_too_small_to_judge_is_refused_before_any_training(tmp_path: Path) -> None:
    for number in range(60):
        path = tmp_path / "source" / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (9, 9), (number, 0, 0)).save(path)
    made = call_module("trainer.prepare", str(tmp_path / "source"), str(tmp_path / "data"))
    assert made.returncode == 0, made.stderr
    done = call_module(f"{COMMAND}.__main__", str(tmp_path / "data"), f"--report={tmp_path}/report.html")
    number = dataset.load(str(tmp_path / "data")).num_examples["train"]
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: {number} training images are too few to judge; 50 are needed\n"


@pytest.mark.slow
def test_the_commands_of_the_evaluation_page(
    repository: Path, digits_directory: Path, trained_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = {path: path.read_bytes() for path in digits_directory.iterdir()}
    known = {"DATASET": str(digits_directory), "RUN": str(trained_directory), "5": "2"}
    evaluate, check = commands(repository / "docs" / "evaluation.md")
    more = ["--max-steps=4", "--global-batch-size=16", "--predictions=lines.jsonl"]
    # Another run's folder is not touched.
    environment = {"AIP_CHECKPOINT_DIR": str(tmp_path / "other"), "TMPDIR": str(tmp_path)}
    for line, added in ((evaluate, []), (check, more)):
        _, _, module, *words = [known.get(word, word) for word in shlex.split(line)]
        done = run_module(module, *words, *added, **environment)
        assert done.returncode == 0, done.stderr
    assert "fold 2 of 2: trained after " in done.stdout
    lines = [json.loads(line) for line in Path("lines.jsonl").read_text().splitlines()]
    assert {line["file_name"] for line in lines} == names(dataset.load(str(digits_directory)), "train")
    assert {line["split"] for line in lines} == {"train"}
    made = ["evaluation.html", "label-errors.html", "lines.jsonl", "predictions.jsonl"]
    assert sorted(path.name for path in tmp_path.iterdir()) == made
    assert all("Probable label errors" in Path(name).read_text() for name in made[:2])
    assert {path: path.read_bytes() for path in digits_directory.iterdir()} == before


@pytest.mark.slow
def test_a_stop_ends_the_training_and_leaves_nothing(digits_directory: Path, tmp_path: Path) -> None:
    words = [str(digits_directory), "--folds=2", "--epochs=1000", f"--report={tmp_path}/report.html"]
    process = start_module(COMMAND, *words, TMPDIR=str(tmp_path))
    assert process.stdout is not None
    assert process.stdout.readline().startswith("2 training runs")
    while not (children := psutil.Process(process.pid).children()):
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=300)
    assert process.returncode == 143
    assert not any(child.is_running() for child in children)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_training_ends_with_a_killed_command_and_the_next_one_removes_what_is_left(
    digits_directory: Path, tmp_path: Path
) -> None:
    words = [str(digits_directory), "--folds=2", "--epochs=1000", f"--report={tmp_path}/report.html"]
    process = start_module(COMMAND, *words, TMPDIR=str(tmp_path))
    while not (checkpoints := list(tmp_path.glob(".label-errors.*/dataset-0/checkpoints"))):
        assert process.poll() is None
        time.sleep(0.05)
    children = psutil.Process(process.pid).children()
    process.kill()
    process.communicate(timeout=300)
    _, alive = psutil.wait_procs(children, timeout=300)
    assert children
    assert not alive
    assert checkpoints[0].exists()
    refused = run_module(COMMAND, str(digits_directory), "--max-minutes=0.0001", TMPDIR=str(tmp_path))
    assert refused.returncode == 1
    assert list(tmp_path.iterdir()) == []
