"""torchrun with two processes, wrapped: killed, stopped, with an exception in one process and a process that is lost.

PyTorch is not installed with this package's tests: TORCHRUN_PYTHON names an interpreter that has it, or torchrun is on
PATH.
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from exact_resume.checkpoints import result_file
from vertex_testing.processes import have_ended

TORCHRUN = (
    [os.environ["TORCHRUN_PYTHON"], "-m", "torch.distributed.run"]
    if "TORCHRUN_PYTHON" in os.environ
    else [shutil.which("torchrun") or ""]
)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.soak,
    pytest.mark.skipif(
        TORCHRUN == [""] or subprocess.run([*TORCHRUN, "--help"], capture_output=True).returncode != 0,
        reason="torchrun is neither on PATH nor in TORCHRUN_PYTHON",
    ),
]
TRAIN = """
import os, time
import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

@record
def main():
    dist.init_process_group("gloo")
    rank, weights = dist.get_rank(), torch.zeros(4)
    os.makedirs("own", exist_ok=True)
    step = max((int(name[5:-3]) for name in os.listdir("own") if name.startswith("step-")), default=0)
    if step:
        weights = torch.load(f"own/step-{step}.pt")["weights"]
    dist.barrier()
    if rank == 0:
        print("resumed at", step, flush=True)
    while step < 40:
        step += 1
        gradient = torch.randn(4, generator=torch.Generator().manual_seed(1000 * step + rank))
        dist.all_reduce(gradient)
        weights += gradient
        time.sleep(0.1)
        if rank == 1 and step == 12 and os.path.exists("fail"):
            raise ValueError("shapes differ")
        if rank == 0:
            print(f"step {step} norm {weights.norm():.5f}", flush=True)
            if step % 5 == 0:
                torch.save({"weights": weights}, "own/saving.tmp")
                os.rename("own/saving.tmp", f"own/step-{step}.pt")
    dist.barrier()
    if rank == 0:
        print("ended as", weights.tolist(), flush=True)
    dist.destroy_process_group()

main()
"""


class Training:
    """The wrapped training in a folder; every process of it has to end with the wrapper."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "train.py").write_text(TRAIN)

    def start(self) -> "subprocess.Popen[str]":
        words = [
            "--checkpoint-directory=kept",
            "--watch=own",
            "--whole=rename:step-*.pt",
            "--exit-code=1=134:lost-peer",
        ]
        words += [
            "--progress=step (?P<step>\\d+) norm (?P<norm>\\S+)",
            "--",
            *TORCHRUN,
            "--nproc-per-node=2",
            "train.py",
        ]
        return subprocess.Popen(
            [sys.executable, "-m", "exact_resume", *words],
            cwd=self.folder,
            env={**os.environ, "NO_GCE_CHECK": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, disturb: Callable[["subprocess.Popen[str]"], None] = lambda process: None) -> tuple[int, str, str]:
        """Return exit code, stdout and stderr, once no process is left."""
        process = self.start()
        try:
            disturb(process)
            left = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
            stdout, stderr = process.communicate(timeout=300)
        finally:
            process.kill()
        deadline = time.monotonic() + 60
        while not have_ended(left):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return process.returncode, stdout, stderr

    def wait_for_commit(self, process: "subprocess.Popen[str]") -> None:
        while process.poll() is None and not list(self.folder.glob("kept/step-*/manifest.json")):
            time.sleep(0.05)


@pytest.fixture(scope="module")
def end(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the last line of an undisturbed training."""
    training = Training(tmp_path_factory.mktemp("undisturbed"))
    code, stdout, stderr = training.run()
    assert code == 0, stderr
    result = result_file.read_result(str(training.folder / "kept"))
    assert result
    assert (result["final_step"], result["examples"]) == (40, "unknown")
    return stdout.splitlines()[-1]


@pytest.fixture
def training(tmp_path: Path) -> Training:
    return Training(tmp_path)


def finish(training: Training, end: str) -> None:
    code, stdout, stderr = training.run()
    assert code == 0, stderr
    assert (re.sub(r"\d+", "N", stdout.splitlines()[0]), stdout.splitlines()[-1]) == ("resumed at N", end)
    assert result_file.is_finished(str(training.folder / "kept"))


@pytest.mark.parametrize("seed", range(5))
def test_a_killed_wrapper(training: Training, end: str, seed: int) -> None:
    def kill(process: "subprocess.Popen[str]") -> None:
        time.sleep(random.Random(seed).uniform(2, 12))
        process.kill()

    training.run(kill)
    finish(training, end)


def test_an_exception_in_one_process_is_a_failure(training: Training, end: str) -> None:
    (training.folder / "fail").touch()
    code, _, stderr = training.run()
    assert (code, "ValueError: shapes differ" in stderr) == (1, True)
    error = json.loads((training.folder / "own/.exact_resume/error.json").read_text())
    assert error["message"]["message"] == "ValueError: shapes differ"
    (training.folder / "fail").unlink()
    finish(training, end)


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_stops_all_processes(training: Training, end: str, number: int, expected: int) -> None:
    def stop(process: "subprocess.Popen[str]") -> None:
        training.wait_for_commit(process)
        process.send_signal(number)

    code, _, stderr = training.run(stop)
    assert (code, f"ended with 1, the exit code is {expected}" in stderr) == (expected, True)
    finish(training, end)


def test_a_killed_process_is_a_failure_or_a_lost_peer(training: Training, end: str) -> None:
    """torchrun reports the one that was killed, which leaves no error file, or the other one, which lost its peer."""

    def kill(process: "subprocess.Popen[str]") -> None:
        training.wait_for_commit(process)
        workers = [
            each for each in psutil.Process(process.pid).children(recursive=True) if "train.py" in each.cmdline()[-1]
        ]
        workers[-1].kill()

    code, _, stderr = training.run(kill)
    assert code in (1, 134), stderr
    finish(training, end)
