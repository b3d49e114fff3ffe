"""Jobs of several machines with the real trainer, some of which are lost."""

import json
import pathlib
import re
import shlex
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from localvertex import jobs
from localvertex.jobs import JobState
from localvertex.jobs.faults.faults import parse
from localvertex.processes.processes import Processes
from tests.support.modules import call_module
from vertex_testing.html import report_data

pytestmark = pytest.mark.slow(first=True)

STEPS_PER_EPOCH, STEPS = 14, 84
"""600 images, of which 448 are for training, 32 per step; 6 epochs."""


@pytest.fixture(scope="module")
def dataset(digits_source: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Small images of digits."""
    folder = tmp_path_factory.mktemp("data") / "dataset"
    words = [str(digits_source), str(folder), "--image-size", "16", "--max-examples", "600"]
    assert call_module("trainer.prepare", *words).returncode == 0
    return folder


class Trained:
    """A job that has ended: its outcome, its result and its folder."""

    def __init__(self, folder: pathlib.Path, outcome: jobs.Outcome) -> None:
        assert outcome.state is JobState.SUCCEEDED, outcome.error
        self.outcome, self.folder = outcome, folder
        self.result = json.loads((folder / "out" / "checkpoints" / "result.json").read_text())

    def events(self, replica: str = "workerpool0-0") -> list[dict[str, Any]]:
        """The event log of a replica."""
        path = self.folder / "out" / "checkpoints" / "events" / f"{replica}.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()]

    @property
    def log(self) -> str:
        return (self.folder / "job" / "log.txt").read_text()


Train = Callable[..., Trained]


@pytest.fixture(scope="module")
def train(dataset: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> Train:
    """Train on pools of these sizes with these faults."""

    def run(sizes: list[int], faults: tuple[str, ...] = (), flags: tuple[str, ...] = ("--exact",)) -> Trained:
        folder = tmp_path_factory.mktemp("job")
        common = ("--epochs=6", "--global-batch-size=32", "--checkpoint-every-steps=10")
        args = [f"--dataset={dataset}", "--model=convnet", *common, *flags]
        container = {"image_uri": "gcr.io/x/trainer:1", "command": ["python", "-m", "trainer.task"], "args": args}
        machine = {"machine_type": "n1-standard-4"}
        pools = [{"machine_spec": machine, "replica_count": size, "container_spec": container} for size in sizes]
        return ended(folder, pools, tuple(map(parse, faults)))

    return run


def ended(folder: pathlib.Path, pools: list[dict[str, Any]], faults: tuple[jobs.Fault, ...] = ()) -> Trained:
    """Run a job of these worker pools to its end."""
    spec = {
        "worker_pool_specs": pools,
        "base_output_directory": {"output_uri_prefix": f"{folder}/out"},
        "scheduling": {"strategy": "SPOT", "restart_job_on_worker_restart": len(pools) == 2},
    }
    outcome = jobs.run_job(
        jobs.read_job({"job_spec": spec}, region="us-central1", warn=lambda text: None),
        workspace=jobs.Workspace(folder=folder / "job", private_dir=folder),
        processes=Processes(grace_seconds=5),
        injected=faults,
    )
    return Trained(folder, outcome)


@pytest.fixture(scope="module")
def uninterrupted(train: Train) -> Trained:
    """Two workers without a fault."""
    return train([1, 1])


def test_two_workers_train_one_model(uninterrupted: Trained) -> None:
    assert uninterrupted.result["final_step"] == STEPS
    assert uninterrupted.outcome.status.num_restarts == 0
    assert uninterrupted.outcome.status.goodput["num_steps"] == STEPS


# tests/e2e/test_resume.py kills one of two workers.
@pytest.mark.parametrize(
    "faults",
    [
        ("preempt all at step 55 grace 3s",),
        pytest.param(("SIGKILL workerpool1-0 at step 25", "preempt all at step 55 grace 3s"), marks=pytest.mark.soak),
    ],
)
def test_lost_machines_change_no_bit_of_the_weights(
    train: Train, uninterrupted: Trained, faults: tuple[str, ...]
) -> None:
    interrupted = train([1, 1], faults)
    assert interrupted.result["weights_sha256"] == uninterrupted.result["weights_sha256"]
    assert interrupted.outcome.status.num_restarts == len(faults)
    assert interrupted.outcome.status.goodput["num_steps"] == STEPS
    assert all(f"fault: {fault}" in interrupted.log for fault in faults)


@pytest.mark.soak
def test_a_frozen_machine_and_a_preemption_change_no_bit_of_the_weights(train: Train, uninterrupted: Trained) -> None:
    """The only proof here of a frozen machine, so the log has to contain it."""
    faults = ("SIGSTOP workerpool1-0 at 51%", "SIGTERM workerpool0-0 at 54% grace 3s", "preempt all at 84% grace 4s")
    interrupted = train([1, 1], faults)
    assert interrupted.outcome.status.num_restarts >= 1
    assert "fault: SIGSTOP workerpool1-0" in interrupted.log
    assert interrupted.result["weights_sha256"] == uninterrupted.result["weights_sha256"]
    assert interrupted.outcome.status.goodput["num_steps"] == STEPS


def test_the_trainer_saves_on_a_maintenance_notice_and_continues(train: Train) -> None:
    """Nothing else asks for a save within an epoch; the notice comes while TensorFlow is still being imported."""
    flags = ("--checkpoint-every-steps=0", "--checkpoint-every-seconds=0")
    trained = train([1], ("maintenance notice workerpool0-0 at 0.5s grace 300s",), flags=flags)
    events = trained.events()
    (heard,) = [n for n, event in enumerate(events) if "notice from the metadata server" in event.get("message", "")]
    assert "maintenance (TERMINATE_ON_HOST_MAINTENANCE)" in events[heard]["message"]
    steps, save = (next(each for each in events[heard:] if each["event"] == kind) for kind in ("steps", "save"))
    # At the first boundary after it; then the same process continues to the end.
    assert save["step"] == steps["last_step"] < STEPS_PER_EPOCH
    assert trained.result["final_step"] == STEPS
    assert trained.outcome.status.num_restarts == 0


# tests/e2e/test_resume.py has a shorter one, with SIGTERM alone.
@pytest.mark.soak
def test_a_preempted_machine_is_noticed_and_loses_no_step(train: Train) -> None:
    trained = train([1], ("preempt all at step 30 grace 60s",))
    events = trained.events()
    # The notice and SIGTERM come at the same time; a process that sees SIGTERM first saves and ends without the notice.
    assert any("preempted (TRUE)" in text or "SIGTERM" in text for text in (each.get("message", "") for each in events))
    starts = [n for n, event in enumerate(events) if event["event"] == "start"]
    assert len(starts) == 2
    last = max(event["last_step"] for event in events[: starts[1]] if event["event"] == "steps")
    assert [event["step"] for event in events[starts[1] :] if event["event"] == "restore"] == [last]
    assert trained.outcome.status.goodput["num_lost_steps"] == 0
    assert trained.result["final_step"] == STEPS


@pytest.mark.soak
def test_parameter_servers_outlive_the_loss_of_a_worker(train: Train) -> None:
    trained = train([1, 1, 1], ("SIGKILL workerpool1-0 at step 25",), flags=())
    assert trained.result["final_step"] == STEPS
    assert "workerpool1-0: exit code 137" in trained.log


@pytest.mark.soak
def test_the_pipeline_of_the_page_survives_the_loss_of_a_machine(
    repository: pathlib.Path, compiled_training: pathlib.Path, python: str, tmp_path: pathlib.Path
) -> None:
    page = (repository / "packages/localvertex/docs/faults.md").read_text().replace("\\\n", "")
    (line,) = re.findall(r"^    python (.*)$", page, flags=re.M)
    words = [str(compiled_training) if word == "pipeline.json" else word for word in shlex.split(line)]
    smaller = [
        "max_examples=800",
        "epochs=5",
        "image_size=16",
        "global_batch_size=32",
        "minimum_score=0.2",
        "exact=true",
    ]
    where = ["--work-dir", str(tmp_path), "--run-id", "faults"]
    given = [f"--parameter={each}" for each in smaller]
    done = subprocess.run([python, *words, *where, *given], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    record = json.loads((tmp_path / "faults" / "run.json").read_text())
    (task,) = [task for task in record["tasks"] if task["custom_job"]]
    assert [replica["num_starts"] for replica in task["custom_job"]["replicas"]] == [2, 2]
    # On a busy machine the peer, which leaves with 134, may be seen first and is then the reported one.
    assert "workerpool1-0: exit code 137" in (tmp_path / "faults" / task["log"]).read_text()
    assert re.search(r"workerpool[01]-0: exit code 13[47]", done.stdout)
    assert "train: Goodput" in done.stdout
    # The same job again, elsewhere and without a fault.
    (planned,) = [task["outputs"]["parameters"] for task in record["tasks"] if task["name"] == "plan"]
    uninterrupted = ended(tmp_path / "uninterrupted", planned["worker_pool_specs"])
    interrupted = json.loads((pathlib.Path(planned["checkpoint_directory"]) / "result.json").read_text())
    assert uninterrupted.outcome.status.num_restarts == 0
    assert uninterrupted.result["weights_sha256"] == interrupted["weights_sha256"]
    (job,) = [each for name, each in report_data(tmp_path / "faults" / "run.html")["events"] if name == "job"]
    assert len(job["timeline"]) == 2
