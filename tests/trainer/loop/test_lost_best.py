"""A lost best checkpoint never silently gives another model: the job fails, and its next start trains again.

The disk is a real one, full during some of the saves. The runs stop early, so the best step is never the last one.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exact_resume.checkpoints import checkpoints, manifest
from exact_resume.checkpoints.result_file import is_finished
from exact_resume.events import log as event_log
from tests.support.forks import fork_module
from tests.support.job import Job
from vertex_testing.shared import make_once

pytestmark = pytest.mark.slow
RUN = [
    "--exact",
    "--epochs=30",
    "--global-batch-size=32",
    "--checkpoint-every-steps=4",
    "--checkpoint-every-seconds=0",
    "--augment=flip-and-shift",
    "--learning-rate=0.01",
    "--patience=2",
]
# -P: the folder of the program has modules that are named as modules of Python.
PROGRAM = [sys.executable, "-P", str(Path(__file__).parents[2] / "support" / "disturbed_task.py")]

RunOnDisk = Callable[..., "subprocess.CompletedProcess[str]"]


def result(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "result.json").read_text())


def notices(folder: Path) -> str:
    return "\n".join(event["message"] for event in event_log.read(str(folder)) if event["event"] == "notice")


@pytest.fixture(scope="session")
def undisturbed(digits_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint folder of an undisturbed run."""

    def make(folder: Path) -> None:
        done = fork_module(
            "trainer.task", f"--dataset={digits_directory}", f"--checkpoint-directory={folder}/run", *RUN
        )
        assert done.returncode == 0, done.stderr

    return make_once(tmp_path_factory, "undisturbed", make) / "run"


@pytest.fixture
def run_on_disk(digits_directory: Path, tmp_path: Path) -> RunOnDisk:
    """Run the trainer on a disk of 20 MB that is full during the saves of some steps, and copy its content to `run`."""
    disk, run = tmp_path / "disk", tmp_path / "run"
    disk.mkdir()
    run.mkdir()
    mounted = f"mount -t tmpfs -o size=20m none {disk}"
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "sh", "-c", mounted]).returncode:
        pytest.skip("needs a namespace in which a small disk can be mounted")
    script = f'{mounted} && cp -a {run} {disk} && {{ "$@"; code=$?; rm -r {run}; cp -a {disk}/run {run}; exit $code; }}'

    def start(*steps: int) -> "subprocess.CompletedProcess[str]":
        command = [*PROGRAM, ",".join(map(str, steps)), "", "--", *RUN]
        words = [*command, f"--dataset={digits_directory}", f"--checkpoint-directory={disk}/run"]
        return subprocess.run(
            ["unshare", "-rm", "sh", "-c", script, "sh", *words], capture_output=True, text=True, timeout=300
        )

    return start


def improvements(folder: Path) -> list[int]:
    """Return the steps that were the best when they were validated."""
    return [event["step"] for event in event_log.read(str(folder)) if event["event"] == "evaluate" and event["is_best"]]


def assert_as_undisturbed(folder: Path, undisturbed: Path) -> None:
    assert is_finished(str(folder))
    ended, wanted = result(folder), result(undisturbed)
    names = ("run_id", "best_step", "final_step", "stop_reason", "validation_accuracy", "validation_loss")
    for name in (*names, "weights_sha256", "batch_digests", "lost_best_step"):
        assert ended[name] == wanted[name], name
    best = manifest.name(wanted["best_step"])
    for name in (checkpoints.VARIABLES_FILE, manifest.MANIFEST_FILE):
        assert (folder / best / name).read_bytes() == (undisturbed / best / name).read_bytes()
    newest = manifest.name(wanted["final_step"])
    assert (folder / newest / manifest.MANIFEST_FILE).read_bytes() == (
        undisturbed / newest / manifest.MANIFEST_FILE
    ).read_bytes()


@pytest.mark.parametrize("num_lost", [2, *(pytest.param(number, marks=pytest.mark.soak) for number in (1, 100))])
def test_a_best_checkpoint_lost_on_a_full_disk_fails_the_job_and_is_trained_again(
    run_on_disk: RunOnDisk, undisturbed: Path, digits_directory: Path, tmp_path: Path, num_lost: int
) -> None:
    run, lost = tmp_path / "run", improvements(undisturbed)[-num_lost:]
    best = result(undisturbed)["best_step"]
    assert best == lost[-1] < result(undisturbed)["final_step"]
    done = run_on_disk(*lost)
    assert done.returncode == 1, done.stdout + done.stderr
    assert not is_finished(str(run))
    assert done.stderr.strip().splitlines()[-1].startswith(f"failed: the best checkpoint, of step {best}, was lost")
    assert (
        f"the checkpoint of step {best} could not be saved ([Errno 28] No space left on device); the last one is from"
        in notices(run)
    )
    assert f"the best checkpoint, of step {best}, was lost" in notices(run)
    ended = result(run)
    assert ended["lost_best_step"] == best
    # What is left can be evaluated, and the report says so.
    assert checkpoints.best(str(run)).step == ended["best_step"] != best
    report = tmp_path / "report.html"
    words = [f"--dataset={digits_directory}", f"--checkpoint-directory={run}", f"--report={report}"]
    evaluated = fork_module("trainer.evaluate", *words)
    assert evaluated.returncode == 0, evaluated.stderr
    assert f"the best checkpoint, of step {best}, was lost" in evaluated.stderr
    assert f"the best checkpoint, of step {best}, was lost" in report.read_text()
    # With room again.
    again = run_on_disk()
    assert again.returncode == 0, again.stderr
    assert_as_undisturbed(run, undisturbed)
    older = max([step for step in range(0, lost[0], 4) if step < lost[0]] + improvements(undisturbed)[:-num_lost])
    restored = [event["step"] for event in event_log.read(str(run)) if event["event"] == "restore"]
    assert restored == [older]


@pytest.mark.soak
def test_a_disk_that_stays_full_for_the_rest_of_the_run(
    run_on_disk: RunOnDisk, undisturbed: Path, tmp_path: Path
) -> None:
    run, best = tmp_path / "run", result(undisturbed)["best_step"]
    done = run_on_disk(*range(best, 1000))
    assert done.returncode == 1
    assert f"the checkpoint of step {result(undisturbed)['final_step']} could not be saved" in done.stderr
    assert not (run / "result.json").exists()
    # Again no room for the same one, then for all.
    assert run_on_disk(best).returncode == 1
    assert not is_finished(str(run))
    assert run_on_disk().returncode == 0
    assert_as_undisturbed(run, undisturbed)


def test_a_better_checkpoint_after_the_lost_one_makes_up_for_it(
    run_on_disk: RunOnDisk, undisturbed: Path, tmp_path: Path
) -> None:
    done = run_on_disk(*improvements(undisturbed)[:-1])
    assert done.returncode == 0, done.stderr
    assert_as_undisturbed(tmp_path / "run", undisturbed)


@pytest.mark.soak
def test_all_workers_fail_when_the_best_checkpoint_is_lost(digits_directory: Path, tmp_path: Path) -> None:
    """Otherwise a worker would wait for the chief, or report success."""
    words = [f"--dataset={digits_directory}", *RUN]
    first = Job(tmp_path / "first", [*words, f"--checkpoint-directory={tmp_path / 'first'}"], 2)
    first.run(max_attempts=1)
    words.append(f"--checkpoint-directory={tmp_path / 'run'}")
    run = Job(tmp_path / "run", ["", first.result()["best_checkpoint"], "--", *words], 2)
    run.module = "tests.support.disturbed_task"
    run.start()
    run.wait_for_all()
    run.end()
    assert run.exit_codes == [[1, 1]], run.logs()
    assert run.result()["lost_best_step"] == first.result()["best_step"]
    again = Job(tmp_path / "run", words, 2)
    again.run(max_attempts=1)
    for name in ("weights_sha256", "best_step", "validation_loss", "lost_best_step", "devices"):
        assert again.result()[name] == first.result()[name]


@pytest.mark.soak
@pytest.mark.parametrize("what", ["a file", "the folder"])
def test_a_best_checkpoint_that_a_user_deletes_in_mid_run(
    undisturbed: Path, digits_directory: Path, tmp_path: Path, what: str
) -> None:
    run, best = tmp_path / "run", manifest.name(result(undisturbed)["best_step"])
    words = [f"--dataset={digits_directory}", f"--checkpoint-directory={run}", *RUN]
    removed = best if what == "the folder" else f"{best}/{checkpoints.VARIABLES_FILE}"
    done = fork_module("tests.support.disturbed_task", "", removed, "--", *words)
    assert done.returncode == 1, done.stderr
    assert done.stderr.strip().splitlines()[-1].startswith("failed: the best checkpoint, of step ")
    done = fork_module("trainer.task", *words)
    assert done.returncode == 0, done.stderr
    assert_as_undisturbed(run, undisturbed)
