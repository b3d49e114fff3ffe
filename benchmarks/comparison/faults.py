"""The same faults for each tool: a training is interrupted, started again, and compared with an undisturbed one.

All train 240 steps of a small network on the digits of scikit-learn, with 50 of 1,500 examples each, in the order of
one sampler, and save every 25 steps. Each start is a fork of a process that has imported the modules.
"""

import argparse
import collections
import dataclasses
import hashlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

NUM_EXAMPLES, BATCH_SIZE, EPOCHS, SAVE_EVERY = 1500, 50, 8, 25
STEPS_PER_EPOCH = NUM_EXAMPLES // BATCH_SIZE
NUM_STEPS = EPOCHS * STEPS_PER_EPOCH
KINDS = ("kill", "SIGTERM", "torn")
"""Kinds of faults, in the order of the table."""
_STEP_SECONDS = 0.005
"""Longer than a step of so small a network, as in a real training: savers in the background get their time."""


class Notes:
    """Notes each step of one start, and sends a signal to the process in one of them."""

    def __init__(self, path: Path, *, fault_step: int = 0, number: int = 0) -> None:
        """Begin a file of notes; the fault comes after a number of steps, 0: never."""
        self._path, self._fault_step, self._signal, self._num_steps = path, fault_step, number, 0
        self._has_begun = False

    def begin(self, weights: Sequence[Any]) -> None:
        """Note the weights before the first step, restored or not; before the others, do nothing."""
        if not self._has_begun:
            self._write([], weights)
        self._has_begun = True

    def step(self, rows: Any, weights: Sequence[Any]) -> None:
        """Note the examples of a step, int [G], and the weights after it."""
        self._write([int(row) for row in rows], weights)
        time.sleep(_STEP_SECONDS)
        self._num_steps += 1
        if self._num_steps == self._fault_step:
            os.kill(os.getpid(), self._signal)

    def _write(self, rows: list[int], weights: Sequence[Any]) -> None:
        digest = hashlib.sha256(b"".join(np.asarray(each).tobytes() for each in weights)).hexdigest()
        with self._path.open("a") as file:
            print(json.dumps([digest, rows]), file=file)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tool:
    """A way to save a training."""

    name: str
    train: Callable[[Path, Notes], object]
    """Trains in a folder to the end, from what is saved there; may return the final loss on the training data."""
    newest: Callable[[Path], Path]
    """Returns the file or folder of the newest checkpoint."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """What a fault has cost."""

    tool: str
    kind: str
    steps_again: int
    """Steps that were trained beyond those of the undisturbed run."""
    too_often: int
    """Visits of examples in the history of the final weights, beyond those of the undisturbed run."""
    too_seldom: int
    """Visits that are missing there."""
    has_started: bool
    """Whether the next start succeeded; otherwise the folder was removed and the run began again."""
    is_equal: bool
    """Whether the final weights are those of the undisturbed run."""
    losses: tuple[float, float] | None
    """Final ones of the undisturbed run and of this one, if the tool returns them."""


_Steps = list[tuple[str, list[int]]]


def measure(tools: Sequence[Tool]) -> int:
    """Disturb trainings with each tool, and print a line of JSON for each; returns the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--num-faults", type=int, required=True, help="of each kind and tool")
    parser.add_argument("--smoke", action="store_true", help="only kill, and only the last tool")
    options = parser.parse_args()
    kinds, tools = (KINDS[:1], tools[-1:]) if options.smoke else (KINDS, tools)
    # Elsewhere the programs print their messages.
    output = os.dup(1)
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory() as folder, os.fdopen(output, "w") as lines:
        for number, tool in enumerate(tools):
            expected = _starts(tool, whole := Path(folder) / f"{number}")
            assert len(expected) == 1, f"{tool.name} failed without a fault"
            for kind in kinds:
                draw = random.Random(f"{options.seed}-{kind}")
                for fault in range(options.num_faults):
                    step = draw.randrange(STEPS_PER_EPOCH + 1, NUM_STEPS)
                    # In mid-epoch.
                    step += step % STEPS_PER_EPOCH == 0
                    disturbed = Path(folder) / f"{number}-{kind}-{fault}"
                    found = _starts(tool, disturbed, kind=kind, fault_step=step)
                    files = [each / "loss" for each in (whole, disturbed)]
                    losses = [float(each.read_text()) for each in files if each.exists()]
                    result = _compared(tool, kind, found, expected[0], losses)
                    print(json.dumps(dataclasses.asdict(result)), file=lines, flush=True)
    return 0


def _starts(tool: Tool, folder: Path, *, kind: str = "", fault_step: int = 0) -> list[_Steps]:
    """Run a training to its end, with a fault; return what each start has noted."""
    number = signal.SIGTERM if kind == "SIGTERM" else signal.SIGKILL
    starts: list[_Steps] = []
    if kind:
        _, steps = _start(tool, folder, len(starts), fault_step, number)
        starts.append(steps)
    if kind == "torn":
        _tear(tool.newest(folder / "run"))
    code, steps = _start(tool, folder, len(starts), 0, number)
    starts.append(steps)
    if code:
        print(f"{tool.name} does not start after: {kind}; removing its folder", file=sys.stderr, flush=True)
        shutil.rmtree(folder / "run")
        code, steps = _start(tool, folder, len(starts), 0, number)
        starts.append(steps)
    assert code == 0, f"{tool.name} failed in an empty folder"
    return starts


def _start(tool: Tool, folder: Path, start: int, fault_step: int, number: int) -> tuple[int, _Steps]:
    """Run the training in a fork; return its exit code and its steps."""
    path = folder / f"notes-{start}"
    (folder / "run").mkdir(parents=True, exist_ok=True)
    sys.stdout.flush()
    if not (child := os.fork()):
        code = 1
        try:
            loss = tool.train(folder / "run", Notes(path, fault_step=fault_step, number=number))
            if isinstance(loss, float):
                (folder / "loss").write_text(repr(loss))
            code = 0
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    lines = path.read_text().splitlines() if path.exists() else []
    return code, [(digest, rows) for digest, rows in map(json.loads, lines)]


def _tear(checkpoint: Path) -> None:
    """Cut the largest file of a checkpoint in half."""
    files = [path for path in checkpoint.rglob("*") if path.is_file()] if checkpoint.is_dir() else [checkpoint]
    largest = max(files, key=lambda path: path.stat().st_size)
    os.truncate(largest, largest.stat().st_size // 2)


def _compared(tool: Tool, kind: str, starts: list[_Steps], expected: _Steps, losses: list[float]) -> Result:
    # Those of the first start that are in the final weights: up to the weights with which the last start began.
    first, last = starts[0], starts[-1]
    restored = [number for number, (digest, _) in enumerate(first) if digest == last[0][0]]
    history = [*first[: restored[-1] + 1], *last] if restored else last
    visits, planned = (collections.Counter(row for _, rows in steps for row in rows) for steps in (history, expected))
    # The first line of each start is no step.
    num_steps = sum(max(0, len(steps) - 1) for steps in starts)
    return Result(
        tool=tool.name,
        kind=kind,
        steps_again=num_steps - (len(expected) - 1),
        too_often=(visits - planned).total(),
        too_seldom=(planned - visits).total(),
        has_started=len(starts) == 2,
        is_equal=last[-1][0] == expected[-1][0],
        losses=(losses[0], losses[1]) if losses else None,
    )


def digits() -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Return images float32 [N, 64], 0 to 1, and labels int64 [N]."""
    from sklearn.datasets import load_digits

    found: Mapping[str, Any] = load_digits()
    return (found["data"][:NUM_EXAMPLES] / 16).astype(np.float32), found["target"][:NUM_EXAMPLES].astype(np.int64)
