"""The demo: the compiled file itself, on real images, from the source to a registered model."""

import json
import os
import pathlib
import signal
import subprocess
from collections.abc import Callable

import pytest

from tests.e2e.conftest import STEPS, Run, Runner
from vertex_testing.html import report_data
from vertex_testing.server import wait_until

pytestmark = pytest.mark.slow

# A user who has only the two folders: TensorFlow and TFDS, nothing of this project.
RELOAD = """
import sys
import numpy as np, tensorflow as tf, tensorflow_datasets as tfds
model, dataset = sys.argv[1:]
signature = tf.saved_model.load(model).signatures["serving_default"]
builder = tfds.builder_from_directory(dataset)
source = builder.as_data_source(split="test", decoders={"image": tfds.decode.SkipDecoding()})
right = [
    int(np.argmax(signature(image_bytes=tf.constant([example["image"]]))["probabilities"])) == example["label"]
    for example in source
]
print(len(right), np.mean(right))
assert not any(name.split(".")[0] == "trainer" for name in sys.modules)
"""


def test_it_succeeds_and_prints_a_table_the_accuracy_the_model_and_the_report(
    demo: Run, work_dir: pathlib.Path
) -> None:
    assert demo.exit_code == 0, demo.output
    assert demo.steps == STEPS
    assert demo.output.count("SUCCEEDED") >= 2 * len(STEPS)
    assert demo.accuracy >= 0.95
    assert f"accuracy = {demo.accuracy:.5g}" in demo.output
    assert str(demo.artifact("export", "model")["uri"]) in demo.output
    report = work_dir / demo.record["run_id"] / "run.html"
    assert str(report) in demo.output
    (tasks,) = [each["tasks"] for name, each in report_data(report)["events"] if name == "run"]
    every = [each for task in tasks for found in task["outputs"]["artifacts"].values() for each in found]
    # The two pages of prepare, those of plan, evaluate and compare.
    assert len([each for each in every if each["view"]["page"]]) == 5


def test_at_most_fifteen_boxes_of_its_graph_start(demo: Run) -> None:
    assert len([task for task in demo.record["tasks"] if task["state"] == "SUCCEEDED"]) <= 15


def test_a_fresh_process_gets_the_printed_accuracy_from_the_saved_model(
    demo: Run, python: str, tmp_path: pathlib.Path
) -> None:
    model, dataset = demo.artifact("export", "model")["uri"], demo.artifact("prepare", "dataset")["uri"]
    done = subprocess.run([python, "-c", RELOAD, model, dataset], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    count, accuracy = done.stdout.split()
    assert int(count) == demo.artifact("prepare", "dataset")["metadata"]["num_test"]
    assert float(accuracy) == pytest.approx(demo.accuracy, abs=1e-9)


def test_the_checkpoint_was_chosen_on_validation(demo: Run) -> None:
    evaluations = [event for event in demo.events() if event["event"] == "evaluate"]
    result = json.loads((pathlib.Path(demo.parameter("plan", "checkpoint_directory")) / "result.json").read_text())
    best = max(event["accuracy"] for event in evaluations)
    assert len(evaluations) > 1
    assert result["validation_accuracy"] == pytest.approx(best)
    assert demo.artifact("export", "model")["metadata"]["step"] == result["best_step"]


def test_it_writes_the_logs_that_the_documented_command_reads(demo: Run, work_dir: pathlib.Path) -> None:
    run_id = demo.parameter("plan", "run_id")
    files = work_dir.glob("training/*/logs/convnet/*/*tfevents*")
    found = {path.relative_to(work_dir / "training").parts[:4] for path in files}
    assert {(run_id, "logs", "convnet", name) for name in ("train", "validation")} <= found


def test_the_first_line_predicts_the_class_of_an_image(demo: Run, tmp_path: pathlib.Path) -> None:
    from PIL import Image
    from sklearn.datasets import load_digits

    digits = load_digits()
    image = tmp_path / "a nine.png"
    index = int((digits.target == 9).argmax())
    Image.fromarray((digits.images[index] * 255 / 16).astype("uint8")).save(image)
    # The command of the first line can be pasted, and has the path of the registered version.
    sentence = demo.record["outcome"]["sentence"]
    assert sentence in demo.output.splitlines()
    said, command = sentence.split(". Predict: ")
    assert said == "Made version 1 of image-training, now champion"
    assert command.endswith("/models/image-training/1/model")
    done = subprocess.run(command, shell=True, input=f"{image}\n", capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    # PATH: CLASS PROBABILITY, ...; the most likely class comes first.
    assert done.stdout.startswith(f"Image file: {image}: 9 ")


def test_a_second_run_trains_nothing_and_reports_that(demo: Run, run: Runner, work_dir: pathlib.Path) -> None:
    before = demo.events()
    again = run(work_dir, "again", source="digits", minimum_score=0.95)
    assert again.exit_code == 0, again.output
    assert again.parameter("plan", "is_finished") is True
    assert again.steps == {"plan", "prepare", "summary"}
    assert again.events() == before
    sentence = demo.record["outcome"]["sentence"].partition("Made ")[2]
    assert f"Nothing new: same as run {demo.record['run_id']}; its model is {sentence}" in again.output.splitlines()
    # The outcome is in the log and on the page.
    outcome = f"test accuracy {demo.accuracy:.4f}, registered as projects/"
    for place in (work_dir / "again" / again.task("plan")["log"], work_dir / "again" / "run.html"):
        text = place.read_text()
        assert "nothing new" in text
        assert outcome in text


@pytest.mark.soak
def test_a_changed_learning_rate_trains_and_a_stopped_run_resumes(
    demo: Run, command: Callable[..., list[str]], run: Runner, work_dir: pathlib.Path
) -> None:
    changed = {"source": "digits", "learning_rate": 0.004, "epochs": 12}
    process = subprocess.Popen(
        command(work_dir, "stopped", **changed), stdout=subprocess.DEVNULL, start_new_session=True
    )
    events = _new_events(work_dir, known={demo.parameter("plan", "run_id")})
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(timeout=300) == 130
    stopped = json.loads((work_dir / "stopped" / "run.json").read_text())
    assert stopped["state"] == "CANCELLED"
    trained = [json.loads(line) for line in events.read_text().splitlines()]
    saved = max(event["step"] for event in trained if event["event"] == "save")

    resumed = run(work_dir, "resumed", **changed)
    assert resumed.exit_code == 0, resumed.output
    assert resumed.parameter("plan", "run_id") != demo.parameter("plan", "run_id")
    (restored,) = [event for event in resumed.events() if event["event"] == "restore"]
    assert restored["step"] == saved
    after = resumed.events()[len(trained) :]
    assert min(event["first_step"] for event in after if event["event"] == "steps") == saved + 1


def _new_events(work_dir: pathlib.Path, known: set[str]) -> pathlib.Path:
    """Wait until a new training run has saved twice, and return the path of its events."""

    def found() -> list[pathlib.Path]:
        paths = work_dir.glob("training/*/checkpoints/events/workerpool0-0.jsonl")
        new = [each for each in paths if each.parents[2].name not in known]
        return [each for each in new if each.read_text().count('"event": "save"') >= 2]

    (path,) = wait_until(found, timeout_seconds=400)
    return pathlib.Path(path)
