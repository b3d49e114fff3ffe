"""No step is lost and none repeated: whatever happens to its machines, a run ends as an uninterrupted one.

Real processes of the trainer, a model with batch normalisation and dropout, random image augmentation, `--exact`.
Weights are compared bit by bit, as is the digest of every step's batch (its examples and their pixels).
"""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exact_resume.checkpoints import checkpoints, manifest
from tests.support.job import EXACT_RUN, EXACT_RUN_STEPS, Job, kill

pytestmark = pytest.mark.slow
SEED = int(os.environ.get("RESUME_TEST_SEED", "20261121"))
WATCHDOG_SECONDS = 900
"""A worker without progress ends after this time; one that has lost a peer ends long before."""

NewJob = Callable[..., Job]
Results = Callable[[int], dict[str, Any]]


@pytest.fixture
def job(digits_directory: Path, tmp_path: Path) -> NewJob:
    """A job over the test's own checkpoint folder."""

    def make(name: str = "run", num_workers: int = 1, *more: str) -> Job:
        arguments = [f"--dataset={digits_directory}", f"--checkpoint-directory={tmp_path / name}", *EXACT_RUN, *more]
        made = Job(tmp_path / name, arguments, num_workers)
        made.forks = True
        return made

    return make


@pytest.fixture
def results(uninterrupted: Callable[[int], Path]) -> Results:
    """Results of uninterrupted runs, by number of workers."""
    return lambda num_workers: json.loads((uninterrupted(num_workers) / "result.json").read_text())


def assert_as_uninterrupted(job: Job, expected: dict[str, Any]) -> None:
    ended = job.result()
    assert ended["batch_digests"] == expected["batch_digests"]
    assert len(ended["batch_digests"]) == EXACT_RUN_STEPS
    for name in ("weights_sha256", "run_id", "final_step", "best_step", "validation_accuracy", "validation_loss"):
        assert ended[name] == expected[name], name
    assert not [name for name in os.listdir(job.folder) if name.endswith(".partial")]


def random_steps(what: str, count: int) -> list[int]:
    print(f"RESUME_TEST_SEED={SEED}")
    # From the first half: the signal has to arrive before the run is over.
    return sorted(random.Random(f"{SEED} {what}").sample(range(1, EXACT_RUN_STEPS // 2), count))


@pytest.mark.slow(first=True)
@pytest.mark.parametrize(
    ("num_workers", "num_kills"),
    [(2, 1), *(pytest.param(number, 2, marks=pytest.mark.soak) for number in (2, 1))],
)
def test_sigkill_at_random_steps_and_a_torn_checkpoint(
    job: NewJob, results: Results, tmp_path: Path, num_workers: int, num_kills: int
) -> None:
    """The checkpoint that is torn after another kill costs steps and changes nothing."""
    run = job("run", num_workers)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    run.environment_of = lambda _: {"TMPDIR": str(temporary)}
    draw = random.Random(f"{SEED} {num_workers}")
    steps = random_steps(f"SIGKILL {num_workers}", num_kills)
    for step in steps:
        victim = draw.randrange(num_workers)
        run.run_until_step(step, kill(victim))
        assert run.exit_codes[-1][victim] == -signal.SIGKILL
        # The others ended by themselves, by SIGABRT.
        assert {code for place, code in enumerate(run.exit_codes[-1]) if place != victim} <= {-signal.SIGABRT}
    # Late enough for several checkpoints since the last restart: the count of restarts is in each of them.
    run.run_until_step(steps[-1] + 14, kill(num_workers - 1))
    newest = checkpoints.steps(str(run.folder))[0]
    path = run.folder / manifest.name(newest) / checkpoints.VARIABLES_FILE
    path.write_bytes(path.read_bytes()[:-100])
    run.run()
    assert f"{manifest.name(newest)} is damaged and was skipped" in run.notices()
    assert_as_uninterrupted(run, results(num_workers))
    assert run.result()["num_restarts"] == num_kills + 1
    restored = [event["step"] for event in run.events() if event["event"] == "restore"]
    assert restored
    assert all(step % 4 == 0 or step % 7 == 0 for step in restored)
    # Not even AutoGraph's, which removes its files only at the end of a process that is not killed.
    assert os.listdir(temporary) == []


def test_sigterm_saves_at_the_next_boundary_on_all_workers(job: NewJob, results: Results) -> None:
    """The chief is stopped first, then the worker."""
    run = job("run", 2)
    for victim, step in enumerate(random_steps("SIGTERM 2", 2)):
        run.run_until_step(step, kill(victim, signal.SIGTERM))
        assert run.exit_codes[-1] == [128 + signal.SIGTERM] * 2
        assert (
            f"stopped after step {run.last_step()}; the checkpoint of step {run.last_step()} is saved" in run.notices()
        )
        assert checkpoints.steps(str(run.folder))[0] == run.last_step()
    run.run()
    assert_as_uninterrupted(run, results(2))


@pytest.mark.soak
@pytest.mark.slow(first=True)
def test_a_frozen_peer_ends_the_other(job: NewJob, results: Results) -> None:
    """The chief is frozen first, then the worker."""
    run = job("run", 2)
    for victim, step in enumerate(random_steps("SIGSTOP", 2)):

        def freeze(running: Job, victim: int = victim) -> None:
            running.workers[victim].send_signal(signal.SIGSTOP)
            started = time.monotonic()
            running.workers[1 - victim].wait(WATCHDOG_SECONDS / 3)
            # 10 s, and more on a busy machine, so it is only printed.
            print(f"the frozen peer was noticed after {time.monotonic() - started:.0f} s")
            running.workers[victim].kill()

        run.run_until_step(step, freeze)
        assert run.exit_codes[-1][1 - victim] == -signal.SIGABRT, run.logs()
        assert "no progress for" not in run.logs(), "it was the watchdog"
    run.run()
    assert_as_uninterrupted(run, results(2))


@pytest.mark.soak
def test_a_disk_that_is_full_for_a_while_costs_checkpoints_and_not_the_run(job: NewJob, results: Results) -> None:
    run = job("run", 2)
    run.start()
    run.wait(until=lambda: run.last_step() >= 6)
    limit_file_size(run, 60_000)
    run.wait(until=lambda: "could not be saved" in run.notices())
    limit_file_size(run, resource.RLIM_INFINITY)
    run.wait()
    run.wait_for_all()
    run.end()
    assert set(run.exit_codes[-1]) == {0}, run.logs()
    assert "could not be saved ([Errno 27] File too large)" in run.notices()
    assert_as_uninterrupted(run, results(2))


def test_a_disk_that_stays_full_fails_the_run_which_can_be_resumed(job: NewJob, results: Results) -> None:
    run = job()
    run.start()
    run.wait(until=lambda: run.last_step() >= 20)
    limit_file_size(run, 60_000)
    run.wait_for_all()
    run.end()
    assert run.exit_codes[-1] == [1]
    assert "free some space and run again to resume from step " in run.logs()
    assert not (run.folder / "result.json").exists()
    run.run()
    assert_as_uninterrupted(run, results(1))


def limit_file_size(run: Job, num_bytes: int) -> None:
    """Limit the size of the chief's files: every write of a checkpoint fails in the middle, as on a full disk."""
    pid = run.workers[0].pid
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (num_bytes, resource.RLIM_INFINITY))


def test_any_number_of_workers_sees_the_same_batches(results: Results) -> None:
    one, two, three = (results(number)["batch_digests"] for number in (1, 2, 3))
    assert len(one) == len(set(one)) == EXACT_RUN_STEPS
    assert one == two == three


def test_several_devices_of_a_machine_equal_several_machines(job: NewJob, results: Results) -> None:
    run = job("run", 1, "--logical-cpu-devices=2")
    run.run()
    assert run.result()["batch_digests"] == results(1)["batch_digests"]
    assert run.result()["weights_sha256"] == results(2)["weights_sha256"]


@pytest.mark.soak
def test_float16_on_several_devices_saves_and_resumes(job: NewJob) -> None:
    """Two devices, overflow at the start (the scale begins at 2^15), and a kill."""
    run = job("run", 1, "--logical-cpu-devices=2", "--precision=float16")
    run.run_until_step(20, kill(0))
    run.run()
    manifests = [json.loads(path.read_text()) for path in run.folder.glob("step-*/manifest.json")]
    assert manifests
    assert all(manifest["extra"]["loss_scaling"]["scale"] > 0 for manifest in manifests)
    assert run.result()["final_step"] == EXACT_RUN_STEPS


def test_workers_that_do_not_share_a_folder_are_refused(digits_directory: Path, tmp_path: Path) -> None:
    run = Job(tmp_path / "chief", [f"--dataset={digits_directory}", *EXACT_RUN], 2)
    folders = iter([tmp_path / "chief", tmp_path / "other"])
    run.arguments_of = lambda place: [f"--checkpoint-directory={next(folders)}"]
    run.start()
    codes = run.wait_for_all()
    run.end()
    assert codes[1] == 2, run.logs()
    assert "give all workers one shared --checkpoint-directory" in run.logs()
    assert codes[0] == -signal.SIGABRT


# tests/trainer/loop/test_other_devices.py has a shorter one.
@pytest.mark.soak
def test_a_run_moves_from_two_workers_to_one(job: NewJob, results: Results) -> None:
    two = job("run", 2)
    two.run_until_step(15, kill(1))
    refused = job("run", 1)
    refused.start()
    refused.wait_for_all()
    refused.end()
    assert refused.exit_codes == [[2]]
    assert "was trained on 2 x CPU (" in refused.logs()
    one = job("run", 1, "--allow-other-devices")
    one.run()
    assert [each["num_machines"] for each in one.result()["devices"]] == [2, 1]
    assert one.result()["batch_digests"] == results(2)["batch_digests"]
    assert one.result()["run_id"] == results(2)["run_id"]
    assert one.result()["final_step"] == EXACT_RUN_STEPS


# tests/trainer/loop/test_early_stopping.py interrupts every validation.
@pytest.mark.soak
def test_a_validation_that_was_interrupted_is_repeated(job: NewJob, results: Results) -> None:
    """The checkpoint of the end of an epoch is saved unvalidated; the next start validates it first."""
    run = job("run", 1)
    program = Path(__file__).parents[1] / "support" / "stopped_in_validation.py"
    done = subprocess.run([sys.executable, program, "14", "--", *run.arguments], capture_output=True, text=True)
    assert done.returncode == 128 + signal.SIGTERM, done.stderr
    newest = checkpoints.load(str(run.folder), 14)
    assert not newest.is_validated
    run.run()
    assert_as_uninterrupted(run, results(1))
    assert checkpoints.load(str(run.folder), run.result()["best_step"]).is_validated
