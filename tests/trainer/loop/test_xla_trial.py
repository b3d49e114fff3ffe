"""The trial of XLA with real child processes that abort, hang and succeed; none is left afterwards."""

import dataclasses
import math
import signal
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from trainer.cluster.patience import GaveUp
from trainer.cluster.signals import StopRequest
from trainer.config import TrainConfig
from trainer.loop import xla_trial
from trainer.loop.xla_trial import Outcome

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
        assert [path for path in Path("/proc").glob("[0-9]*/cmdline") if mark in content(path)] == []


def content(path: Path) -> str:
    """Return what a file of /proc contains; nothing if its process has ended."""
    try:
        return path.read_text()
    except OSError:
        return ""


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


def test_a_stop_request_ends_the_trial() -> None:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with pytest.raises(GaveUp) as caught:
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


@pytest.mark.slow
def test_the_child_times_both_ways() -> None:
    request = {
        "config": dataclasses.asdict(TrainConfig()),
        "image_size": 16,
        "num_classes": 10,
        "num_steps": 1000,
        "dtype": "float32",
        "batch_size": 8,
        "min_seconds": 0.0,
    }
    outcome = xla_trial.run(request, stop=StopRequest())
    assert outcome.reason == ""
    assert 0 < outcome.without < math.inf
    assert 0 < outcome.compiled < math.inf
