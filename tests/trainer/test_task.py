"""The command: mistakes, finished runs, and the events of a run."""

import itertools
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from exact_resume.checkpoints import checkpoints, ownership
from exact_resume.events import log as event_log
from tests.support.forks import fork_module
from tests.support.modules import call_module, run_module, start_module
from tests.trainer.conftest import SHORT_RUN
from trainer import task as trainer_task
from trainer.models import models
from vertex_testing.cloud_storage.server import CloudStorage
from vertex_testing.server import wait_until

SERVERS = json.dumps(
    {
        "cluster": {"chief": ["a:1"], "worker": ["a:2"], "ps": ["a:3"]},
        "task": {"type": "chief", "index": 0},
    }
)


def task(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return fork_module("trainer.task", *arguments, **environment)


def test_a_finished_run_is_reported_without_loading_tensorflow(digits_directory: Path, trained_directory: Path) -> None:
    before = (trained_directory / "result.json").read_bytes()
    arguments = [f"--dataset={digits_directory}", f"--checkpoint-directory={trained_directory}/", *SHORT_RUN]
    code = (
        "import sys; from trainer import task; code = task.main(sys.argv[1:]);"
        "sys.exit(code or 'tensorflow' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "is finished" in done.stdout
    assert (trained_directory / "result.json").read_bytes() == before


def test_another_configuration_in_the_same_folder_is_refused_by_naming_the_field(
    digits_directory: Path, trained_directory: Path
) -> None:
    directories = [f"--dataset={digits_directory}", f"--checkpoint-directory={trained_directory}"]
    done = call_module("trainer.task", *directories, *SHORT_RUN, "--learning-rate=0.5")
    assert done.returncode == 2
    assert "learning_rate is 0.003 there and 0.5 here" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.slow
def test_an_unfinished_run_of_another_configuration_is_refused_too(
    digits_directory: Path, trained_directory: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(trained_directory, copy)
    (copy / "result.json").unlink()
    done = task(f"--dataset={digits_directory}", f"--checkpoint-directory={copy}", *SHORT_RUN, "--seed=3")
    assert done.returncode == 2
    assert "seed is 0 there and 3 here" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_vertex_and_ai_platform_give_the_checkpoint_directory(digits_directory: Path, tmp_path: Path) -> None:
    short = ["--max-steps=2", "--global-batch-size=16", f"--dataset={digits_directory}"]
    logs = tmp_path / "logs"
    done = task(*short, AIP_CHECKPOINT_DIR=f"{tmp_path}/vertex/", AIP_TENSORBOARD_LOG_DIR=f"{logs}/")
    assert done.returncode == 0, done.stderr
    assert checkpoints.steps(str(tmp_path / "vertex"))[0] == 2
    assert list((logs / "convnet" / "train").iterdir())
    assert list((logs / "convnet" / "validation").iterdir())
    assert not (tmp_path / "vertex" / "tensorboard").exists()
    (tmp_path / "file").touch()
    without_logs = task(*short, f"--job-dir={tmp_path}/legacy", AIP_TENSORBOARD_LOG_DIR=f"{tmp_path}/file/logs")
    assert without_logs.returncode == 0
    assert "TensorBoard logs cannot be written" in without_logs.stderr + without_logs.stdout
    assert (tmp_path / "legacy" / "checkpoints" / "result.json").exists()


@pytest.mark.slow
def test_a_run_that_max_steps_ends_within_an_epoch_is_still_validated(digits_directory: Path, tmp_path: Path) -> None:
    done = task(
        f"--dataset={digits_directory}", f"--checkpoint-directory={tmp_path}", "--max-steps=3", "--global-batch-size=16"
    )
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "result.json").read_text())
    assert result["final_step"] == result["best_step"] == 3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy keyword:DeprecationWarning")
def test_a_loss_that_is_not_finite_stops_the_run_and_names_the_steps(digits_directory: Path, tmp_path: Path) -> None:
    model = models.build("convnet", image_size=16, num_classes=10)
    model.get_layer("logits").bias.assign(np.full(10, np.nan))
    model.save_weights(str(tmp_path / "broken.weights.h5"))
    done = task(
        f"--dataset={digits_directory}",
        f"--checkpoint-directory={tmp_path / 'run'}",
        "--global-batch-size=32",
        f"--weights={tmp_path / 'broken.weights.h5'}",
    )
    assert done.returncode == 1
    assert "failed: the loss is nan in step 1 (of steps 1 to 1); lower the learning rate" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "run" / "result.json").exists()
    # Nothing was saved, so the same folder is free for another learning rate.
    assert ownership.identity_in(str(tmp_path / "run")) is None
    last = event_log.read(str(tmp_path / "run"))[-1]
    assert (last["event"], last["code"]) == ("exit", 1)


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        ([], {}, "--dataset is missing"),
        (["--dataset=nowhere"], {}, "--checkpoint-directory is missing"),
        (["--dataset=nowhere", "--checkpoint-directory=x"], {}, "no prepared dataset at 'nowhere'"),
        (["--dataset=x", "--checkpoint-directory=x", "--epochs=0"], {}, "epochs is 0"),
        (["--dataset=x", "--keep-checkpoints=0"], {}, "--keep-checkpoints is 0; expected a whole number from 1"),
        (["--dataset=x", "--epochs=many"], {}, "invalid int value: 'many'"),
        (["--dataset=x", "--model=resnet"], {}, "model='resnet' is not known; did you mean resnet50"),
        (["--dataset=x", "--trainable=some"], {}, "invalid choice: 'some'"),
        (["--dataset=x", "--checkpoint-directory=x"], {"TF_CONFIG": "{"}, "TF_CONFIG is '{'; expected"),
        (["--dataset=x", "--patience=2"], {"TF_CONFIG": SERVERS}, "patience=2 does not work with parameter servers"),
        (["--dataset=x", "--exact"], {"TF_CONFIG": SERVERS}, "exact does not work with parameter servers"),
        (["--dataset=x", "--checkpoint-directory=x"], {"TF_CONFIG": '{"cluster": [3]}'}, "field cluster is [3]"),
        (["--dataset=x", "--watchdog-seconds=-1"], {}, "--watchdog-seconds is -1.0; expected a number from 0"),
    ],
)
def test_mistakes_exit_2_with_one_line(
    arguments: list[str],
    environment: dict[str, str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call_module("trainer.task", *arguments, **environment)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_batch_larger_than_the_data_leaves_nothing_behind(digits_directory: Path, tmp_path: Path) -> None:
    done = run_module(
        "trainer.task",
        f"--dataset={digits_directory}",
        f"--checkpoint-directory={tmp_path / 'new'}",
        "--global-batch-size=100000",
    )
    assert done.returncode == 2
    assert "global_batch_size=100000 is more than the" in done.stderr
    assert not (tmp_path / "new").exists()


def test_the_help_is_grouped_and_lists_models() -> None:
    text = call_module("trainer.task", "--help").stdout
    assert all(group in text for group in ("paths:", "what is trained", "identity:", "execution (same run"))
    assert "--checkpoint-every-seconds" in text
    assert "resnet50" in call_module("trainer.task", "--list-models").stdout


def test_the_events_describe_the_run(trained_directory: Path) -> None:
    history = event_log.read(str(trained_directory))
    kinds = [event["event"] for event in history]
    assert kinds[0] == "start"
    assert kinds[-1] == "exit"
    steps = [event for event in history if event["event"] == "steps"]
    # Every step is in exactly one window, in order.
    assert steps[0]["first_step"] == 1
    assert all(b["first_step"] == a["last_step"] + 1 for a, b in itertools.pairwise(steps))
    assert steps[-1]["last_step"] == history[0]["num_steps"]
    assert {event["replica"] for event in history} == {"workerpool0-0"}
    assert all(event["images_per_second"] > 0 and event["seconds"] > 0 for event in steps)


def test_the_wait_for_other_machines_is_as_long_as_the_pages_say(repository: Path) -> None:
    seconds = trainer_task.parser().get_default("peer_timeout_seconds")
    minutes = f" {seconds / 60:g} minutes"
    dialog = "packages/localvertex/localvertex/console/page/jobs/replicas.js"
    assert f"peer_timeout_seconds, by default{minutes}" in (repository / dialog).read_text()
    assert f"exact_resume exit within{minutes}" in (repository / "packages/localvertex/docs/console.md").read_text()
    assert f"exact_resume, within{minutes}" in (repository / "packages/localvertex/docs/faults.md").read_text()
    assert f"`--peer-timeout-seconds` ({seconds:g})" in (repository / "docs/training.md").read_text()


def test_a_stop_while_a_bucket_does_not_answer_ends_the_training_at_once(server: CloudStorage) -> None:
    server.buckets.create("runs")
    server.faults.fail(1000, 503, matching="retried")
    arrived, proceed = server.faults.hold("GET .*/download/.*dataset.json")
    process = start_module("trainer.task", "--dataset=gs://runs/retried", "--checkpoint-directory=gs://runs/run")
    assert arrived.wait(60)
    process.send_signal(signal.SIGTERM)
    stdout, stderr = process.communicate(timeout=300)
    assert (process.returncode, proceed.is_set()) == (143, False), stderr
    assert stdout == "SIGTERM: stopped before the first step; there is nothing to save\n"
    proceed.set()
    # During a pause, too.
    slow = {"GCS_RETRY_CONFIG_INIT_DELAY_TIME_US": "100000000", "GCS_RETRY_CONFIG_MAX_DELAY_TIME_US": "100000000"}
    server.faults.requests.clear()
    process = start_module(
        "trainer.task", "--dataset=gs://runs/retried", "--checkpoint-directory=gs://runs/run", **slow
    )
    wait_until(lambda: bool(server.faults.requests))
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=300)
    assert process.returncode == 143
