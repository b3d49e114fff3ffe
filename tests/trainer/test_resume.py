"""A run that is killed and started again ends as the one that was not disturbed, to the bit."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.trainer.conftest import module_process, run_module
from trainer import checkpoints, events
from trainer.errors import UserError
from trainer.run_identity import is_finished

pytestmark = pytest.mark.slow
ARGUMENTS = [
    "--exact",
    "--epochs=5",
    "--global-batch-size=32",
    "--checkpoint-every-steps=4",
    "--augment=flip-and-shift",
]
SEED = int(os.environ.get("RESUME_TEST_SEED", "20260822"))


def arguments(dataset, folder):
    return [f"--dataset={dataset}", f"--checkpoint-directory={folder}", *ARGUMENTS]


def result(folder: Path):
    return json.loads((folder / "result.json").read_text())


@pytest.fixture(scope="module")
def undisturbed(digits_directory, tmp_path_factory):
    """A run of 35 steps that nothing happens to."""
    folder = tmp_path_factory.mktemp("undisturbed")
    done = run_module("trainer.task", *arguments(digits_directory, folder))
    assert done.returncode == 0, done.stderr
    return folder


def kill_at(moment, step, dataset, folder):
    script = Path(__file__).with_name("killed_task.py")
    command = [sys.executable, str(script), moment, str(step), "--", *arguments(dataset, folder)]
    return subprocess.run(command, check=False, capture_output=True).returncode


def assert_equal_runs(folder, undisturbed):
    ended, wanted = result(folder), result(undisturbed)
    assert ended["weights_sha256"] == wanted["weights_sha256"]
    for name in ("run_id", "final_step", "best_step", "validation_accuracy", "validation_loss"):
        assert ended[name] == wanted[name]
    # Nothing temporary is left behind.
    assert not [name for name in os.listdir(folder) if name.endswith(".partial")]
    # Where steps were trained twice, they gave the same numbers.
    assert validations(folder) == validations(undisturbed)


def validations(folder):
    found = {}
    for event in events.read(str(folder)):
        if event["event"] == "evaluate":
            found.setdefault(event["step"], set()).add((event["loss"], event["accuracy"]))
    return found


def test_two_undisturbed_runs_are_equal(undisturbed, digits_directory, tmp_path):
    assert run_module("trainer.task", *arguments(digits_directory, tmp_path)).returncode == 0
    assert_equal_runs(tmp_path, undisturbed)


def test_killed_at_random_steps(undisturbed, digits_directory, tmp_path):
    print(f"RESUME_TEST_SEED={SEED}")
    steps = sorted(random.Random(SEED).sample(range(1, result(undisturbed)["final_step"]), 3))
    for step in steps:
        assert kill_at("steps", step, digits_directory, tmp_path) == -signal.SIGKILL
    done = run_module("trainer.task", *arguments(digits_directory, tmp_path))
    assert done.returncode == 0, done.stderr
    assert "going on at step" in done.stdout
    assert_equal_runs(tmp_path, undisturbed)
    assert result(tmp_path)["num_restarts"] == 3


def test_killed_just_before_a_save_is_committed(undisturbed, digits_directory, tmp_path):
    assert kill_at("save", 12, digits_directory, tmp_path) == -signal.SIGKILL
    assert [name for name in os.listdir(tmp_path) if name.endswith(".partial")]
    assert max(checkpoints.steps(str(tmp_path))) < 12
    assert run_module("trainer.task", *arguments(digits_directory, tmp_path)).returncode == 0
    assert_equal_runs(tmp_path, undisturbed)


def test_a_torn_newest_checkpoint_costs_steps_but_changes_nothing(undisturbed, digits_directory, tmp_path):
    assert kill_at("steps", 22, digits_directory, tmp_path) == -signal.SIGKILL
    newest = checkpoints.steps(str(tmp_path))[0]
    path = tmp_path / checkpoints.name(newest) / checkpoints.VARIABLES_FILE
    path.write_bytes(path.read_bytes()[:-100])
    done = run_module("trainer.task", *arguments(digits_directory, tmp_path))
    assert done.returncode == 0, done.stderr
    assert f"{checkpoints.name(newest)} is damaged and was passed over" in done.stdout
    assert_equal_runs(tmp_path, undisturbed)


def test_a_full_disk_in_the_middle_costs_checkpoints_but_not_the_run(undisturbed, digits_directory, tmp_path):
    assert kill_at("full", 16, digits_directory, tmp_path) == 0
    assert result(tmp_path)["weights_sha256"] == result(undisturbed)["weights_sha256"]
    notices = [event["message"] for event in events.read(str(tmp_path)) if event["event"] == "notice"]
    assert "the checkpoint of step 16 could not be saved ([Errno 28] No space left on device)" in notices[0]


def test_a_full_disk_at_the_end_fails_the_run_and_it_can_go_on(undisturbed, digits_directory, tmp_path):
    assert kill_at("full", 35, digits_directory, tmp_path) == 1
    assert not (tmp_path / "result.json").exists()
    assert run_module("trainer.task", *arguments(digits_directory, tmp_path)).returncode == 0
    assert_equal_runs(tmp_path, undisturbed)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_request_saves_and_leaves_with_its_code(undisturbed, digits_directory, tmp_path, number):
    process = module_process("trainer.task", *arguments(digits_directory, tmp_path))
    deadline = time.monotonic() + 60
    while not any(event["event"] == "steps" for event in events.read(str(tmp_path))):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=60)
    if process.returncode == 0:
        pytest.fail("the run was over before the signal came; make it longer")
    assert process.returncode == 128 + number, stderr
    assert f"{number.name}: stopped at step" in stdout
    last = [event for event in events.read(str(tmp_path)) if event["event"] == "steps"][-1]["last_step"]
    assert checkpoints.steps(str(tmp_path))[0] == last
    assert run_module("trainer.task", *arguments(digits_directory, tmp_path)).returncode == 0
    assert_equal_runs(tmp_path, undisturbed)


@pytest.mark.parametrize("damaged", ["the best", "all"])
def test_a_finished_run_with_a_damaged_checkpoint_is_trained_again_and_not_passed_off(
    undisturbed, digits_directory, tmp_path, damaged
):
    folder = tmp_path / "run"
    shutil.copytree(undisturbed, folder)
    best = result(folder)["best_checkpoint"]
    for path in folder.glob("step-*/variables.npz"):
        if damaged == "all" or path.parent.name == best:
            path.write_bytes(path.read_bytes()[:1000])
    assert not is_finished(str(folder))
    with pytest.raises(UserError, match="damaged"):
        checkpoints.best(str(folder))
    done = run_module("trainer.task", *arguments(digits_directory, folder))
    assert done.returncode == 0, done.stderr
    assert is_finished(str(folder))
    assert result(folder)["weights_sha256"] == result(undisturbed)["weights_sha256"]
