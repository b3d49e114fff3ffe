"""`exact_resume.run` with several processes: killed, frozen, stopped and failing, alone and together."""

import hashlib
import json
import os
import random
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from exact_resume import Sampler
from exact_resume.checkpoints import checkpoints, result_file
from exact_resume.events import log as event_log
from vertex_testing.cloud_storage.server import CloudStorage
from vertex_testing.forks import Process
from vertex_testing.programs import TRAININGS

PROGRAM = """
import os, random, sys, time
import numpy as np
import exact_resume

folder, barrier = sys.argv[1:]
rank, steps = int(os.environ.get("NUMBER", 0)), int(os.environ.get("STEPS", 60))
random.seed(rank), np.random.seed(rank)
fault, fault_step = os.environ.get("FAULT", ""), int(os.environ.get("FAULT_STEP", -1))
weights, data = np.zeros(3), np.random.default_rng(0).normal(size=(100, 3))
sampler = exact_resume.Sampler(num_examples=100, global_batch_size=8, seed=5)
with exact_resume.run(os.environ.get("BUCKET", folder), steps=steps,
                      config={"rate": os.environ.get("RATE", "0.1")}, sampler=sampler,
                      save_every_steps=int(os.environ.get("EVERY", 4)), state={"weights": weights},
                      peer_timeout_seconds=float(os.environ.get("TIMEOUT", 60))) as run, \\
        open(f"{folder}.seen-{run.num_workers}-{run.rank}", "a") as seen:
    for number, step in enumerate(run, 1):
        print(step, *sampler.shard(step, run), file=seen, flush=True)
        if fault == "fork" and number == 8 and not os.fork():
            while not os.path.exists(folder + ".over"):
                time.sleep(0.01)
            os._exit(0)
        # As a collective operation: it waits for the others, for ever if one is lost.
        with open(f"{barrier}-{run.rank}", "a") as file:
            file.write(".")
        for other in range(run.num_workers):
            while not os.path.exists(f"{barrier}-{other}") or os.path.getsize(f"{barrier}-{other}") < number:
                time.sleep(0.001)
        weights += 0.1 * (data[sampler.indices(step)].mean(axis=0) - weights)
        random.random(), np.random.random()
        time.sleep(0.005)
        if step == fault_step and fault == "raise":
            raise ZeroDivisionError("of its own")
        if step == fault_step and fault == "break":
            break
        if step == fault_step and fault == "finish":
            run.finish(f"enough, says {rank}")
    run.result(metrics={"norm": float(weights @ weights)})
    if fault == "late":
        raise ZeroDivisionError("after the loop")
print(weights.tobytes().hex(), random.random(), np.random.random(), run.step)
"""
SAMPLER = Sampler(num_examples=100, global_batch_size=8, seed=5)


class Job:
    """Starts of one program in one folder; what is left of them is killed."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.folder = folder
        self._program, self._num_starts = program, 0
        self.processes: list[Process] = []

    def start(
        self, count: int, *faults: dict[str, str], place: Callable[[int, int], dict[str, str]] | None = None
    ) -> list[Process]:
        """Start workers, each with environment variables of its own."""
        self._num_starts += 1
        self._num_seen = {path: len(path.read_text()) for path in self.folder.parent.glob(f"{self.folder.name}.seen-*")}
        barrier = f"{self.folder}.barrier-{self._num_starts}"
        started = []
        for rank in range(count):
            env = os.environ | (place or torch)(rank, count) | {"NUMBER": str(rank)}
            env |= faults[rank] if rank < len(faults) else {}
            words = [self._program, self.folder, barrier]
            started.append(TRAININGS.start(words, env=env, stderr=subprocess.PIPE))
            self.processes.append(started[-1])
        return started

    def wait_for_step(self, step: int, count: int, rank: int = 0) -> None:
        """Wait until a worker of the last start has reached a step."""
        path = self.folder.with_name(f"{self.folder.name}.seen-{count}-{rank}")
        for _ in range(12_000):
            lines = path.read_text()[self._num_seen.get(path, 0) :].splitlines() if path.exists() else []
            if any(int(line.partition(" ")[0]) >= step for line in lines):
                return
            time.sleep(0.005)
        raise AssertionError(f"step {step} was not reached")

    def check_examples(self, num_steps: int) -> None:
        """Check that all workers together had the examples of each step."""
        shards: dict[tuple[int, int], dict[int, str]] = {}
        for path in self.folder.parent.glob(f"{self.folder.name}.seen-*"):
            count, rank = map(int, path.name.split("-")[-2:])
            for line in path.read_text().splitlines():
                step, _, examples = line.partition(" ")
                found = shards.setdefault((int(step), count), {})
                assert found.setdefault(rank, examples) == examples
        whole = {step for (step, count), found in shards.items() if len(found) == count}
        assert whole == set(range(num_steps))
        for (step, count), found in shards.items():
            if len(found) == count:
                assert " ".join(found[rank] for rank in range(count)).split() == [*map(str, SAMPLER.indices(step))]


def torch(rank: int, count: int) -> dict[str, str]:
    return {"RANK": str(rank), "WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}


def tensorflow(rank: int, count: int) -> dict[str, str]:
    cluster = {"chief": ["127.0.0.1:1"], "worker": [f"127.0.0.1:{each + 1}" for each in range(1, count)]}
    task = {"type": "worker" if rank else "chief", "index": max(0, rank - 1)}
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": task})}


def vertex(rank: int, count: int) -> dict[str, str]:
    cluster = {"workerpool0": ["127.0.0.1:1"], "workerpool1": [f"127.0.0.1:{each + 1}" for each in range(1, count)]}
    task = {"type": "workerpool1" if rank else "workerpool0", "index": max(0, rank - 1)}
    return {"CLUSTER_SPEC": json.dumps({"cluster": cluster, "task": task}), "CLOUD_ML_JOB_ID": "7"}


def finish(processes: list[Process]) -> tuple[list[int], list[str], list[str]]:
    """Return exit codes (134: SIGABRT), outputs and messages."""
    texts = [process.communicate(timeout=120) for process in processes]
    codes = [134 if process.returncode == -signal.SIGABRT else process.returncode for process in processes]
    return codes, [stdout for stdout, _ in texts], [stderr for _, stderr in texts]


def rendezvous(folder: Path) -> list[Path]:
    return list(folder.glob("rendezvous-*"))


def wait_for_rendezvous(folder: Path) -> None:
    for _ in range(12_000):
        if rendezvous(folder):
            return
        time.sleep(0.005)
    raise AssertionError("the chief has written no file")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("program") / "train.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def job(program: Path, tmp_path: Path) -> Iterator[Job]:
    job = Job(program, tmp_path / "run")
    yield job
    job.folder.with_name("run.over").touch()
    for process in job.processes:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def undisturbed(program: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What each of two workers prints at the end."""
    job = Job(program, tmp_path_factory.mktemp("undisturbed") / "run")
    codes, outputs, messages = finish(job.start(2))
    assert codes == [0, 0], messages
    job.check_examples(60)
    return outputs


@pytest.mark.parametrize(
    ("rank", "seed", "num_kills"),
    [
        (0, 0, 1),
        (1, 1, 1),
        *(pytest.param(rank, 2 + rank, 3, marks=[pytest.mark.slow, pytest.mark.soak]) for rank in (0, 1)),
    ],
)
def test_a_killed_worker_ends_the_other_with_134_and_the_run_resumes(
    job: Job, undisturbed: list[str], rank: int, seed: int, num_kills: int
) -> None:
    rng = random.Random(seed)
    for step in sorted(rng.sample(range(1, 55), num_kills)):
        processes = job.start(2)
        job.wait_for_step(step, 2, rank)
        time.sleep(rng.random() * 0.01)
        processes[rank].kill()
        codes, _, messages = finish(processes)
        assert codes[1 - rank] == 134
        assert f"lost a peer worker (worker {rank}: " in messages[1 - rank]
    codes, outputs, messages = finish(job.start(2))
    assert (codes, outputs) == ([0, 0], undisturbed), messages
    job.check_examples(60)
    result = result_file.read_result(str(job.folder))
    assert result
    assert result["num_restarts"] == num_kills
    assert rendezvous(job.folder) == []


@pytest.mark.slow
@pytest.mark.soak
def test_two_workers_on_a_bucket_are_killed_stopped_and_resume(
    job: Job, undisturbed: list[str], server: CloudStorage
) -> None:
    variables = {**server.environment, "BUCKET": "gs://b/run"}
    rng = random.Random(5)
    faults = [(0, signal.SIGKILL), (1, signal.SIGKILL), (1, signal.SIGTERM), (0, signal.SIGKILL)]
    for step, (rank, number) in zip(sorted(rng.sample(range(1, 50), len(faults))), faults, strict=True):
        processes = job.start(2, variables, variables)
        job.wait_for_step(step, 2, rank)
        processes[rank].send_signal(number)
        codes, _, messages = finish(processes)
        if number == signal.SIGTERM:
            assert codes == [143, 143], messages
        else:
            assert codes[1 - rank] == 134, messages
    codes, outputs, messages = finish(job.start(2, variables, variables))
    assert (codes, outputs) == ([0, 0], undisturbed), messages
    job.check_examples(60)
    assert result_file.is_finished("gs://b/run")
    result = result_file.read_result("gs://b/run")
    assert result
    assert result["num_restarts"] == len(faults)
    left = [name for name in server.buckets.names("b") if "rendezvous" in name or ".partial" in name]
    assert left == []


def test_one_worker_two_workers_and_one_again_train_the_same(job: Job, undisturbed: list[str]) -> None:
    for count, step, place in ((1, 9, torch), (2, 21, tensorflow)):
        processes = job.start(count, place=place)
        job.wait_for_step(step, count)
        processes[-1].send_signal(signal.SIGTERM)
        assert finish(processes)[0] == [143] * count
    (code,), (output,), messages = finish(job.start(1))
    assert (code, output.split()[0]) == (0, undisturbed[0].split()[0]), messages
    job.check_examples(60)


@pytest.mark.parametrize(("rank", "number"), [(0, signal.SIGINT), (1, signal.SIGTERM)])
def test_a_signal_at_one_worker_stops_all_at_the_same_step(job: Job, rank: int, number: signal.Signals) -> None:
    processes = job.start(2, *[{"EVERY": "0", "STEPS": "5000"}] * 2, place=vertex)
    job.wait_for_step(7, 2, rank)
    processes[rank].send_signal(number)
    codes, outputs, messages = finish(processes)
    assert (codes, outputs) == ([128 + number] * 2, ["", ""]), messages
    step = checkpoints.steps(str(job.folder))[0]
    line = f"exact_resume: {number.name}: stopped after step {step}; the checkpoint of step {step} is saved"
    assert all(line in text.splitlines() for text in messages)
    assert not (job.folder / "result.json").exists()
    assert sorted(path.name for path in (job.folder / "events").iterdir()) == [
        "workerpool0-0.jsonl",
        "workerpool1-0.jsonl",
    ]
    starts = [event["task"] for event in event_log.read(str(job.folder)) if event["event"] == "start"]
    assert sorted(starts) == ["worker 0", "worker 1"]


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_frozen_worker_is_lost_after_the_timeout(job: Job, rank: int) -> None:
    processes = job.start(2, *[{"TIMEOUT": "2", "STEPS": "5000"}] * 2)
    job.wait_for_step(9, 2, rank)
    processes[rank].send_signal(signal.SIGSTOP)
    codes, _, messages = finish([processes[1 - rank]])
    assert codes == [134]
    assert f"lost a peer worker (worker {rank}: it was silent for 2 s)" in messages[0]
    # It wakes up after all.
    processes[rank].send_signal(signal.SIGCONT)
    assert finish([processes[rank]])[0] == [134]


def test_a_worker_with_another_configuration_is_refused_on_all(job: Job) -> None:
    codes, _, messages = finish(job.start(2, {}, {"RATE": "0.2"}))
    assert codes == [1, 1]
    line = (
        'exact_resume: error: the workers differ: config.rate is "0.1" on worker 0 and "0.2" on worker 1; start'
        " all with the same flags, data and code"
    )
    assert [line in text for text in messages] == [True, True], messages
    assert list(job.folder.iterdir()) == []


@pytest.mark.slow
def test_another_run_in_the_folder_is_refused_on_all(job: Job, program: Path) -> None:
    assert finish(job.start(2, *[{"STEPS": "3"}] * 2))[0] == [0, 0]
    before = {path: path.read_bytes() for path in job.folder.rglob("*") if path.is_file()}
    for faults in ([{"RATE": "0.2", "STEPS": "3"}] * 2, [{"STEPS": "3"}, {"RATE": "0.2", "STEPS": "3"}]):
        codes, _, messages = finish(job.start(2, *faults))
        assert codes == [1, 1]
        assert all("config.rate is " in text.splitlines()[-1] for text in messages), messages
    assert {path: path.read_bytes() for path in job.folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        # One that comes from the program is the same on all, and restarting cannot help.
        (["raise", "raise"], [1, 1]),
        pytest.param(["raise", ""], [1, 134], marks=pytest.mark.slow),
        pytest.param(["", "break"], [134, 1], marks=pytest.mark.slow),
        pytest.param(["late", ""], [1, 134], marks=pytest.mark.slow),
    ],
)
def test_a_worker_that_fails_exits_with_its_own_code_and_the_others_with_134(
    job: Job, faults: list[str], expected: list[int]
) -> None:
    codes, _, messages = finish(job.start(2, *({"FAULT": fault, "FAULT_STEP": "10"} for fault in faults)))
    assert codes == expected, messages
    assert not [path for path in checkpoints.steps(str(job.folder)) if path > 10 and "late" not in faults]


def test_the_child_of_a_killed_worker_does_not_hide_its_loss(job: Job) -> None:
    processes = job.start(2, {}, {"FAULT": "fork"})
    job.wait_for_step(12, 2, 1)
    processes[1].kill()
    codes, _, messages = finish(processes[:1])
    assert codes == [134], messages
    assert "worker 1: it was silent" not in messages[0]


def test_all_finish_at_the_same_step(job: Job) -> None:
    codes, outputs, messages = finish(job.start(2, *[{"FAULT": "finish", "FAULT_STEP": "10", "EVERY": "0"}] * 2))
    assert codes == [0, 0], messages
    assert [output.split()[-1] for output in outputs] == ["11", "11"]
    result = result_file.read_result(str(job.folder))
    assert result
    assert (result["final_step"], result["stop_reason"]) == (11, "enough, says 0")


@pytest.mark.slow
def test_to_finish_on_one_worker_is_refused_by_name(job: Job) -> None:
    # The step is the last one of a block.
    codes, _, messages = finish(job.start(2, {}, {"FAULT": "finish", "FAULT_STEP": "3"}))
    assert codes == [1, 1], messages
    line = "run.finish is false on worker 0 and true on worker 1; call run.finish on all workers with the same step"
    assert all(line in text.splitlines()[-1] for text in messages), messages
    assert not (job.folder / "result.json").exists()


@pytest.mark.slow
def test_a_stop_while_waiting_for_the_others_ends_at_once(job: Job) -> None:
    (process,) = job.start(1, place=lambda rank, count: torch(0, 2))
    wait_for_rendezvous(job.folder)
    process.send_signal(signal.SIGTERM)
    codes, _, messages = finish([process])
    assert codes == [143], messages
    assert "exact_resume: SIGTERM: stopped while waiting for worker 1" in messages[0]
    assert list(job.folder.iterdir()) == []


@pytest.mark.slow
def test_a_stop_of_a_worker_that_waits_for_the_chief_ends_at_once(job: Job) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        job.folder.mkdir()
        name = f"rendezvous-{hashlib.sha256(b'').hexdigest()[:8]}.json"
        stale = {"host": "127.0.0.1", "port": other.getsockname()[1], "token": ""}
        (job.folder / name).write_text(json.dumps(stale))
        (process,) = job.start(1, place=lambda rank, count: torch(1, 2))
        other.accept()[0].close()
        process.send_signal(signal.SIGTERM)
        codes, _, messages = finish([process])
    assert codes == [143], messages
    assert "exact_resume: SIGTERM: stopped while waiting for worker 0" in messages[0]


@pytest.mark.slow
def test_a_worker_that_does_not_come_is_named(job: Job) -> None:
    codes, _, messages = finish(job.start(1, {"TIMEOUT": "1"}, place=lambda rank, count: torch(0, 3)))
    assert codes == [134]
    assert "still waiting for worker 1, worker 2; exiting with 134" in messages[0]


@pytest.mark.slow
def test_the_stale_file_of_a_killed_start_confuses_nobody(job: Job) -> None:
    (chief,) = job.start(1, {"STEPS": "5"}, place=lambda rank, count: torch(0, 2))
    wait_for_rendezvous(job.folder)
    chief.kill()
    assert rendezvous(job.folder)
    (worker,) = job.start(1, {"STEPS": "5"}, place=lambda rank, count: torch(1, 2))
    time.sleep(1.0)
    job._num_starts -= 1
    (chief,) = job.start(1, {"STEPS": "5"}, place=lambda rank, count: torch(0, 2))
    codes, _, messages = finish([chief, worker])
    assert codes == [0, 0], messages
    assert rendezvous(job.folder) == []
