"""The trial of XLA with real child processes that abort, hang and succeed; none is left afterwards."""

import contextlib
import math
import os
import re
import select
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from exact_resume.workers.deadline import TimedOut
from exact_resume.workers.signals import StopRequest
from tests.support.job import Job
from trainer.loop.xla import trial as xla_trial
from trainer.loop.xla.trial import Outcome
from vertex_testing.processes import command_line

ABORTS = (
    "print('LLVM ERROR: Cannot select: intrinsic', file=sys.stderr); print('#0 frame', file=sys.stderr); os.abort()"
)
HANGS = "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"
SUCCEEDS = "print('from the network'); print(json.dumps({'without': 2.0, 'compiled': 1.0, 'reason': ''}))"


def tried(program: str, **options: Any) -> Outcome:
    """Run a child with a program of its own, and check that it is gone."""
    mark = f"child-{uuid.uuid4()}"
    command = [sys.executable, "-c", f"import json, os, signal, sys, time; {program}", mark]
    try:
        return xla_trial.run({}, command=command, **{"stop": StopRequest(), **options})
    finally:
        assert [each for each in psutil.process_iter() if mark in command_line(each)] == []


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (SUCCEEDS, Outcome(without=2.0, compiled=1.0)),
        (ABORTS, Outcome(reason="the trial of XLA ended with SIGABRT (LLVM ERROR: Cannot select: intrinsic)")),
        ("sys.exit('some error')", Outcome(reason="the trial of XLA ended with exit code 1 (some error)")),
        ("os._exit(0)", Outcome(reason="the trial of XLA ended with exit code 0 (no message)")),
        ("print('[1]')", Outcome(reason="the trial of XLA ended with exit code 0 ([1])")),
    ],
)
def test_a_child_that_ends_is_an_outcome(program: str, expected: Outcome) -> None:
    assert tried(program) == expected


def test_a_child_that_hangs_is_killed() -> None:
    outcome = tried(HANGS, limit_seconds=0.5)
    assert outcome == Outcome(reason="XLA was not ready after 0.5 s in its trial")
    assert math.isinf(outcome.compiled)


def test_a_child_ends_with_its_killed_parent(tmp_path: Path) -> None:
    # Closed by the kernel when the last process ends that has it open.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    child = (
        "import os, time; from trainer.loop.xla import child;"
        f" child.measure = lambda **request: time.sleep(1000 + os.open({str(pipe)!r}, os.O_WRONLY));"
        " child.main()"
    )
    parent = (
        "import sys; from exact_resume.workers.signals import StopRequest; from trainer.loop.xla import trial;"
        f" trial.run({{}}, stop=StopRequest(), command=[sys.executable, '-c', {child!r}])"
    )
    with subprocess.Popen([sys.executable, "-c", parent]) as started, contextlib.ExitStack() as stack:
        stack.callback(started.kill)
        with pipe.open("rb", buffering=0) as reader:
            children = psutil.Process(started.pid).children()
            stack.callback(lambda: [each.kill() for each in children if each.is_running()])
            started.kill()
            assert select.select([reader], [], [], 300)[0]


def test_a_stop_request_ends_the_trial() -> None:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with pytest.raises(TimedOut) as caught:
            tried(f"os.kill(os.getppid(), signal.SIGTERM); {HANGS}", stop=StopRequest().install())
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert caught.value.exit_code == 143


@pytest.mark.parametrize(
    ("capabilities", "known", "expected"),
    [
        ([(9, 0)], ["sm_60", "sm_89", "compute_90"], ""),
        ([(8, 6)], ["sm_60", "sm_89", "compute_90"], ""),
        ([(9, 0), (12, 0)], ["sm_60", "sm_89", "compute_90"], "compute capability 12.0, because this TensorFlow was"),
        ([(10, 0)], ["sm_90a"], "built for up to 9.0"),
        ([(10, 3)], ["sm_100"], "built for up to 10.0"),
        ([(12, 0)], ["sm_90", "compute_120"], ""),
        ([(12, 0)], [], ""),
        ([], ["sm_90"], ""),
    ],
)
def test_gpus_that_tensorflow_does_not_know_are_left_out(
    capabilities: list[tuple[int, int]], known: list[str], expected: str
) -> None:
    reason = xla_trial.unknown_gpu(capabilities, known)
    assert expected in reason
    assert bool(reason) == bool(expected)


@pytest.fixture
def run(digits_directory: Path, tmp_path: Path) -> Callable[..., list[str]]:
    """Train as on GPUs, one worker per program of a child, or the real one where it is empty; return what each logs."""

    def finished(*programs: str) -> list[str]:
        arguments = [f"--dataset={digits_directory}", f"--checkpoint-directory={tmp_path / 'run'}", "--epochs=2"]
        job = Job(tmp_path / "run", [*arguments, "--global-batch-size=30"], len(programs))
        job.module, board = "tests.support.xla_task", str(tmp_path / "board")
        # Any other child may take its time on a loaded machine.
        limits = ["3" if each == HANGS else "300" for each in programs]
        job.environment_of = lambda place: {
            "TRIAL": programs[place],
            "TRIAL_SECONDS": limits[place],
            "AIP_TENSORBOARD_LOG_DIR": board,
        }
        job.run(max_attempts=1)
        assert job.result()["final_step"] == 14
        logs = [(tmp_path / f"run-{place}.log").read_text() for place in range(len(programs))]
        for log in logs:
            assert "devices before the trial: not initialised; after it: not initialised, 0 children" in log
        return logs

    return finished


@pytest.mark.slow
def test_all_workers_continue_without_xla_if_the_trial_of_one_aborts_or_hangs(run: Callable[..., list[str]]) -> None:
    logs = run(ABORTS, HANGS, SUCCEEDS)
    for log, reason in zip(
        logs,
        (
            "the trial of XLA ended with SIGABRT (LLVM ERROR: Cannot select: intrinsic)",
            "XLA was not ready after 3 s in its trial",
            "another worker cannot use XLA",
        ),
        strict=True,
    ):
        assert f"{reason}; continuing without it" in log
        assert "compiled passes: True" not in log


@pytest.mark.slow
def test_the_real_child_decides(run: Callable[..., list[str]]) -> None:
    (log,) = run("")
    found = re.search(r"XLA: [0-9.]+ times as fast; (switched on|not used)", log)
    assert found, log
    assert ("compiled passes: True" in log) == (found[1] == "switched on")
