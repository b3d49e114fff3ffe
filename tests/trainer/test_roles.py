"""The roles that Vertex AI knows besides chief and worker, as real processes."""

import signal

import pytest

from tests.trainer.job import Job
from trainer import checkpoints

pytestmark = pytest.mark.slow


@pytest.fixture
def job(digits_directory, tmp_path):
    def make(num_workers, *others, epochs=8):
        arguments = [
            f"--dataset={digits_directory}", f"--checkpoint-directory={tmp_path / 'run'}", f"--epochs={epochs}",
            "--global-batch-size=32", "--checkpoint-every-steps=5", "--keep-checkpoints=100",
        ]  # fmt: skip
        return Job(tmp_path / "run", arguments, num_workers, *others)

    return make


def test_parameter_servers_with_a_worker_that_is_lost_and_comes_back(job):
    run = job(3, "ps", epochs=30)
    run.start()
    run.wait(until=lambda: run.last_step() >= 20)
    run.workers[2].send_signal(signal.SIGKILL)
    run.workers[2].wait()
    run.workers[2] = run.start_worker(2)
    run.wait()
    run.wait_for_all(30)
    run.end()
    # The servers end by themselves when result.json is there.
    assert set(run.exit_codes[-1]) == {0}, run.logs()
    ended = run.result()
    assert ended["final_step"] == 30 * 7
    assert ended["batch_digests"] == []
    assert ended["validation_accuracy"] > 0.8
    assert "no two runs are equal" in run.notices()


def test_a_lost_parameter_server_ends_the_chief_and_the_run_goes_on_from_the_checkpoint(job):
    run = job(2, "ps", epochs=30)
    run.run_until_step(20, lambda running: running.workers[2].send_signal(signal.SIGKILL))
    assert run.exit_codes[-1][0] == -signal.SIGABRT, run.logs()
    run.run()
    assert run.result()["final_step"] == 30 * 7
    assert next(event["step"] for event in run.events() if event["event"] == "restore") >= 15


def test_an_evaluator_looks_at_every_checkpoint_and_leaves_after_the_last(job):
    run = job(1, "evaluator")
    run.run(max_attempts=1)
    assert run.exit_codes == [[0, 0]]
    seen = [event for event in run.events("workerpool3-0") if event["event"] == "evaluate"]
    assert [event["step"] for event in seen] == list(reversed(checkpoints.steps(str(run.folder))))
    # What both have evaluated they agree on; the training saves at the end of an epoch if it was the best.
    validations = [event for event in run.events() if event["event"] == "evaluate"]
    own = {event["step"]: event["accuracy"] for event in validations}
    assert {event["step"] for event in validations if event["is_best"]} <= {event["step"] for event in seen}
    assert all(own[event["step"]] == event["accuracy"] for event in seen if event["step"] in own)
