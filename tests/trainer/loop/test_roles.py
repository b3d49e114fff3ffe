"""The roles besides chief and worker (parameter server, evaluator), as real processes."""

import json
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from exact_resume.checkpoints import checkpoints
from tests.support.forks import fork_module
from tests.support.job import Job
from tests.support.modules import start_module

pytestmark = pytest.mark.slow
REPEATS = """
import keras


class Noise(keras.layers.Layer):
    def call(self, values):
        return values + keras.random.normal((1,), seed=7)


def build(*, image_size, num_classes, weights):
    images = keras.Input((image_size, image_size, 3), dtype="uint8")
    values = keras.layers.GlobalAveragePooling2D()(Noise()(keras.layers.Rescaling(1 / 255)(images)))
    return keras.Model(images, keras.layers.Dense(num_classes, "softmax", dtype="float32")(values))
"""


@pytest.fixture
def job(digits_directory: Path, tmp_path: Path) -> Callable[..., Job]:
    def make(num_workers: int, *others: str, epochs: int = 8) -> Job:
        arguments = [
            f"--dataset={digits_directory}",
            f"--checkpoint-directory={tmp_path / 'run'}",
            f"--epochs={epochs}",
            "--global-batch-size=32",
            "--checkpoint-every-steps=5",
            "--keep-checkpoints=100",
        ]
        made = Job(tmp_path / "run", arguments, num_workers, *others)
        made.forks = True
        return made

    return make


@pytest.mark.soak
@pytest.mark.slow(first=True)
def test_parameter_servers_survive_a_worker_that_is_lost_and_restarted(job: Callable[..., Job]) -> None:
    run = job(3, "ps", epochs=30)
    run.arguments += ["--metric=balanced-accuracy"]
    run.start()
    run.wait(until=lambda: run.last_step() >= 20)
    run.workers[2].send_signal(signal.SIGKILL)
    run.workers[2].wait()
    run.workers[2] = run.start_worker(2)
    run.wait()
    run.wait_for_all()
    run.end()
    # The servers exit when result.json is written.
    assert set(run.exit_codes[-1]) == {0}, run.logs()
    ended = run.result()
    assert ended["final_step"] == 30 * 7
    assert ended["batch_digests"] == []
    assert ended["validation_accuracy"] > 0.8
    scores = [event["score"] for event in run.events() if event["event"] == "evaluate"]
    assert (ended["metric"], ended["score"]) == ("balanced-accuracy", max(scores))
    assert "no two runs are equal" in run.notices()


def test_parameter_servers_name_random_numbers_that_repeat(job: Callable[..., Job], tmp_path: Path) -> None:
    (tmp_path / "repeating_network.py").write_text(REPEATS)
    run = job(2, "ps", epochs=1)
    run.environment_of = lambda place: {"PYTHONPATH": str(tmp_path)}
    run.arguments += ["--model=repeating_network:build"]
    run.run(max_attempts=1)
    assert run.exit_codes == [[0, 0, 0]], run.logs()
    assert "draws the same random numbers in every step with" in run.notices()


@pytest.mark.soak
def test_frozen_stopped_and_lost_machines_end_all_others_as_in_synchronous_training(job: Callable[..., Job]) -> None:
    run, aborted = job(2, "ps", epochs=8), -signal.SIGABRT

    def codes_after(step: int, number: int, place: int, *, waits_for: tuple[int, ...]) -> list[int | None]:
        def act(running: Job) -> None:
            running.workers[place].send_signal(number)
            for other in waits_for:
                running.workers[other].wait(300)
            if number == signal.SIGSTOP:
                running.workers[place].kill()

        run.run_until_step(step, act)
        return run.exit_codes[-1]

    # A frozen worker stays until it is killed.
    assert codes_after(6, signal.SIGSTOP, 1, waits_for=(0, 2)) == [aborted, -signal.SIGKILL, aborted], run.logs()
    assert "is frozen" in run.notices()
    assert codes_after(11, signal.SIGTERM, 0, waits_for=(1, 2)) == [143, aborted, aborted], run.logs()
    assert codes_after(16, signal.SIGKILL, 2, waits_for=(0, 1)) == [aborted, aborted, -signal.SIGKILL], run.logs()
    assert "lost a peer worker (chief 0 (127.0.0.1:" in run.notices("workerpool1-0")
    run.run()
    assert run.result()["final_step"] == 8 * 7
    assert [event["step"] for event in run.events() if event["event"] == "restore"][-1] >= 15


@pytest.mark.parametrize("metric", [pytest.param("accuracy", marks=pytest.mark.soak), "macro-f1"])
def test_an_evaluator_evaluates_every_checkpoint_and_exits_after_the_last(job: Callable[..., Job], metric: str) -> None:
    run = job(1, "evaluator")
    run.arguments += [f"--metric={metric}"]
    # No validation gains that much, so the run ends early, as it would without the evaluator.
    run.arguments += ["--patience=3", "--minimum-accuracy-gain=0.95"]
    run.run(max_attempts=1)
    assert run.exit_codes == [[0, 0]]
    assert (run.result()["final_step"], run.result()["num_planned_steps"]) == (4 * 7, 8 * 7)
    seen = [event for event in run.events("workerpool3-0") if event["event"] == "evaluate"]
    assert [event["step"] for event in seen] == list(reversed(checkpoints.steps(str(run.folder))))
    # Both get the same result for a checkpoint; the training saves at the end of an epoch only if it was the best.
    validations = [event for event in run.events() if event["event"] == "evaluate"]
    decides = "accuracy" if metric == "accuracy" else "score"
    own = {event["step"]: event[decides] for event in validations}
    assert {event["step"] for event in validations if event["is_best"]} <= {event["step"] for event in seen}
    assert all(own[event["step"]] == event[decides] for event in seen if event["step"] in own)


def test_an_evaluator_may_have_fewer_devices_than_the_training(digits_directory: Path, tmp_path: Path) -> None:
    arguments = [
        f"--dataset={digits_directory}",
        f"--checkpoint-directory={tmp_path}/run",
        "--epochs=2",
        "--model=convnet",
        "--global-batch-size=16",
    ]
    done = fork_module("trainer.task", *arguments, "--logical-cpu-devices=2")
    assert done.returncode == 0, done.stderr
    # Of machines that have gone: it meets none of them.
    workers = ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"]
    config = {"cluster": {"worker": workers}, "task": {"type": "evaluator", "index": 0}}
    arguments += ["--peer-timeout-seconds=5"]
    environment = {
        "TF_CONFIG": json.dumps(config),
        "CLUSTER_SPEC": json.dumps({"task": {"type": "workerpool3", "index": 0}}),
    }
    done = fork_module("trainer.task", *arguments, **environment)
    assert (done.returncode, "nothing to do" in done.stdout) == (0, True), done.stderr
    # As while it was still training.
    result, aside = tmp_path / "run" / "result.json", tmp_path / "result.json"
    assert json.loads(result.read_text())["identity"]["global_batch_size"] == 16
    result.rename(aside)
    process = start_module("trainer.task", *arguments, **environment)
    log = tmp_path / "run" / "events" / "workerpool3-0.jsonl"
    while process.poll() is None and not (log.exists() and '"evaluate"' in log.read_text()):
        time.sleep(0.2)
    aside.rename(result)
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 0, stderr
    seen = [event for event in map(json.loads, log.read_text().splitlines()) if event["event"] == "evaluate"]
    assert seen[-1]["epoch"] == 2
