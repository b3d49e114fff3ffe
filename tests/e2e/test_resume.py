"""No step lost, none repeated: whatever happens to the machines, a run ends as the one that nothing happens to.

Real processes of the trainer, a model with batch normalisation and dropout, random changes of the images, `--exact`.
Weights are compared to the bit, and the digest of every step's batch (which examples, with which pixels).
"""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.job import Job, kill
from trainer.checkpoints import checkpoints
from trainer.prepare import prepare

pytestmark = pytest.mark.slow
SEED = int(os.environ.get("RESUME_TEST_SEED", "20261121"))
NUM_STEPS = 84
ARGUMENTS = [
    "--exact", "--epochs=12", "--global-batch-size=32", "--checkpoint-every-steps=4", "--augment=flip-and-shift",
]  # fmt: skip
LONGEST_SECONDS_TO_NOTICE = 15
"""A lost peer ends the others within this, and 134 is the code that makes the service start them again."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    prepare(
        source="digits", output_directory=str(folder / "dataset"), report_path=str(folder / "report.html"),
        image_size=16, max_examples=300,
    )  # fmt: skip
    return folder / "dataset"


@pytest.fixture
def job(data, tmp_path):
    def make(name="run", num_workers=1, *more):
        arguments = [f"--dataset={data}", f"--checkpoint-directory={tmp_path / name}", *ARGUMENTS, *more]
        return Job(tmp_path / name, arguments, num_workers)

    return make


@pytest.fixture(scope="module")
def undisturbed(data, tmp_path_factory):
    """Results of runs that nothing happens to, by number of workers."""
    found = {}

    def result(num_workers):
        if num_workers not in found:
            folder = tmp_path_factory.mktemp("undisturbed") / "run"
            ran = Job(folder, [f"--dataset={data}", f"--checkpoint-directory={folder}", *ARGUMENTS], num_workers)
            ran.run(max_attempts=1)
            found[num_workers] = ran.result()
        return found[num_workers]

    return result


def assert_as_undisturbed(job, wanted):
    ended = job.result()
    assert ended["batch_digests"] == wanted["batch_digests"]
    assert len(ended["batch_digests"]) == NUM_STEPS
    for name in ("weights_sha256", "run_id", "final_step", "best_step", "validation_accuracy", "validation_loss"):
        assert ended[name] == wanted[name], name
    assert not [name for name in os.listdir(job.folder) if name.endswith(".partial")]


def random_steps(what, count):
    print(f"RESUME_TEST_SEED={SEED}")
    # From the first half: the signal has to arrive before the run is over.
    return sorted(random.Random(f"{SEED} {what}").sample(range(1, NUM_STEPS // 2), count))


@pytest.mark.parametrize("num_workers", [1, 2])
def test_sigkill_at_random_steps(job, undisturbed, num_workers):
    run = job("run", num_workers)
    draw = random.Random(f"{SEED} {num_workers}")
    for step in random_steps(f"SIGKILL {num_workers}", 2):
        victim = draw.randrange(num_workers)
        run.run_until_step(step, kill(victim))
        assert run.exit_codes[-1][victim] == -signal.SIGKILL
        # The others left by themselves, by SIGABRT.
        assert {code for place, code in enumerate(run.exit_codes[-1]) if place != victim} <= {-signal.SIGABRT}
    run.run()
    assert_as_undisturbed(run, undisturbed(num_workers))
    assert run.result()["num_restarts"] == 2
    restored = [event["step"] for event in run.events() if event["event"] == "restore"]
    assert all(step % 4 == 0 or step % 7 == 0 for step in restored)


@pytest.mark.parametrize(("num_workers", "victim"), [(1, 0), (2, 0), (2, 1)])
def test_sigterm_saves_at_the_next_boundary_on_all_workers(job, undisturbed, num_workers, victim):
    run = job("run", num_workers)
    run.run_until_step(*random_steps(f"SIGTERM {num_workers}", 1), kill(victim, signal.SIGTERM))
    codes = run.exit_codes[-1]
    assert codes[victim] == 128 + signal.SIGTERM
    # The others are to be started again with it.
    assert {code for place, code in enumerate(codes) if place != victim} <= {134}
    assert f"stopped at step {run.last_step()}; the checkpoint of step {run.last_step()} is saved" in run.notices()
    assert checkpoints.steps(str(run.folder))[0] == run.last_step()
    run.run()
    assert_as_undisturbed(run, undisturbed(num_workers))


@pytest.mark.parametrize("victim", [0, 1])
def test_a_frozen_peer_ends_the_other_in_time(job, undisturbed, victim):
    run = job("run", 2)
    noticed = []

    def freeze(running):
        running.workers[victim].send_signal(signal.SIGSTOP)
        started = time.monotonic()
        survivor = running.workers[1 - victim]
        survivor.wait(60)
        noticed.append(time.monotonic() - started)

    run.run_until_step(*random_steps(f"SIGSTOP {victim}", 1), freeze)
    assert run.exit_codes[-1][1 - victim] == -signal.SIGABRT, run.logs()
    assert noticed[0] < LONGEST_SECONDS_TO_NOTICE
    run.run()
    assert_as_undisturbed(run, undisturbed(2))


@pytest.mark.parametrize("num_workers", [1, 2])
def test_a_torn_checkpoint_costs_steps_and_changes_nothing(job, undisturbed, num_workers):
    run = job("run", num_workers)
    run.run_until_step(22, kill(num_workers - 1))
    newest = checkpoints.steps(str(run.folder))[0]
    path = run.folder / checkpoints.name(newest) / checkpoints.VARIABLES_FILE
    path.write_bytes(path.read_bytes()[:-100])
    run.run()
    assert f"{checkpoints.name(newest)} is damaged and was passed over" in run.notices()
    assert_as_undisturbed(run, undisturbed(num_workers))


@pytest.mark.parametrize("num_workers", [1, 2])
def test_a_disk_that_is_full_for_a_while_costs_checkpoints_and_not_the_run(job, undisturbed, num_workers):
    run = job("run", num_workers)
    run.start()
    run.wait(until=lambda: run.last_step() >= 6)
    limit_file_size(run, 60_000)
    run.wait(until=lambda: "could not be saved" in run.notices())
    limit_file_size(run, resource.RLIM_INFINITY)
    run.wait()
    run.wait_for_all(20)
    run.end()
    assert set(run.exit_codes[-1]) == {0}, run.logs()
    assert "could not be saved ([Errno 27] File too large)" in run.notices()
    assert_as_undisturbed(run, undisturbed(num_workers))


def test_a_disk_that_stays_full_fails_the_run_and_it_can_go_on(job, undisturbed):
    run = job()
    run.start()
    run.wait(until=lambda: run.last_step() >= 20)
    limit_file_size(run, 60_000)
    run.wait_for_all(60)
    run.end()
    assert run.exit_codes[-1] == [1]
    assert "make room and start again, it goes on there" in run.logs()
    assert not (run.folder / "result.json").exists()
    run.run()
    assert_as_undisturbed(run, undisturbed(1))


def limit_file_size(run, num_bytes):
    """No file of the chief's may become larger: every write of a checkpoint fails in the middle, as on a full disk."""
    pid = run.workers[0].pid
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (num_bytes, resource.RLIM_INFINITY))


def test_any_number_of_workers_sees_the_same_batches(undisturbed):
    one, two, three = (undisturbed(number)["batch_digests"] for number in (1, 2, 3))
    assert len(one) == len(set(one)) == NUM_STEPS
    assert one == two == three


def test_several_devices_of_a_machine_are_as_several_machines(job, undisturbed):
    run = job("run", 1, "--logical-cpu-devices=2")
    run.run()
    assert run.result()["batch_digests"] == undisturbed(1)["batch_digests"]
    assert run.result()["weights_sha256"] == undisturbed(2)["weights_sha256"]


def test_float16_on_several_devices_saves_and_resumes(job):
    """Two devices, overflow at the start (the scale begins at 2^15), and a kill."""
    run = job("run", 1, "--logical-cpu-devices=2", "--precision=float16")
    run.run_until_step(20, kill(0))
    run.run()
    manifests = [json.loads(path.read_text()) for path in run.folder.glob("step-*/manifest.json")]
    assert all(manifest["loss_scaling"]["scale"] > 0 for manifest in manifests)
    assert run.result()["final_step"] == NUM_STEPS


def test_workers_that_do_not_share_a_folder_are_told(data, tmp_path):
    run = Job(tmp_path / "chief", [f"--dataset={data}", *ARGUMENTS], 2)
    folders = iter([tmp_path / "chief", tmp_path / "other"])
    run.arguments_of = lambda place: [f"--checkpoint-directory={next(folders)}"]
    run.start()
    codes = run.wait_for_all(60)
    run.end()
    assert codes[1] == 2, run.logs()
    assert "give all workers one --checkpoint-directory that they share" in run.logs()
    assert codes[0] == -signal.SIGABRT


def test_a_run_moves_from_two_workers_to_one(job, undisturbed):
    two = job("run", 2)
    two.run_until_step(15, kill(1))
    one = job("run", 1)
    one.run()
    assert one.result()["batch_digests"] == undisturbed(2)["batch_digests"]
    assert one.result()["run_id"] == undisturbed(2)["run_id"]
    assert one.result()["final_step"] == NUM_STEPS


def test_a_stop_in_the_middle_of_a_validation_is_made_up_for(job, undisturbed, data):
    """The checkpoint of the end of an epoch is saved unvalidated, and the next start validates before it goes on."""
    run = job("run", 1)
    program = Path(__file__).parents[1] / "support" / "stopped_in_validation.py"
    done = subprocess.run([sys.executable, program, "14", "--", *run.arguments], capture_output=True, text=True)
    assert done.returncode == 128 + signal.SIGTERM, done.stderr
    newest = checkpoints.load(str(run.folder), 14)
    assert not newest.is_validated
    run.run()
    assert_as_undisturbed(run, undisturbed(1))
    assert checkpoints.load(str(run.folder), run.result()["best_step"]).is_validated
