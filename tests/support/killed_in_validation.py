"""One run that nothing disturbs and one that is ended at every validation, with their event logs damaged and deleted.

`killed_in_validation.py NUM_WORKERS FOLDER ARGUMENTS...` trains in FOLDER/undisturbed and FOLDER/killed. It prints the
exit codes of each attempt as JSON. Every worker is forked from this process, which has only imported TensorFlow.
"""

import contextlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# `learner` imports TensorFlow before `task` sets the environment for --exact.
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

from exact_resume.checkpoints import checkpoints, result_file
from tests.support.job import free_ports
from trainer import task
from trainer.learner import learner
from trainer.loop import roles as roles  # for the children, which then need not import it

Deed = Callable[[], None]


def die(number: int = signal.SIGKILL) -> None:
    """Send this process a signal."""
    os.kill(os.getpid(), number)


def in_validation(step: int) -> Deed:
    """Return a deed that makes this process die at the end of a validation, before anything about it is saved."""
    evaluate = learner.Learner.evaluate

    def evaluate_and_die(self: learner.Learner, *arguments: Any) -> learner.Score | None:
        score = evaluate(self, *arguments)
        if self.step == step:
            die()
        return score

    return lambda: setattr(learner.Learner, "evaluate", evaluate_and_die)


def stopped_in_validation(step: int) -> Deed:
    """Return a deed that stops this process by SIGTERM in a validation: its step is saved unvalidated."""
    evaluate = learner.Learner.evaluate

    def evaluate_and_stop(self: learner.Learner, *arguments: Any) -> learner.Score | None:
        if self.step == step:
            die(signal.SIGTERM)
        return evaluate(self, *arguments)

    return lambda: setattr(learner.Learner, "evaluate", evaluate_and_stop)


def before_the_result() -> None:
    """Make this process die when the last checkpoint is committed and result.json is not."""
    result_file.write = lambda *_, **__: die()


def attempt(
    folder: Path, num_workers: int, arguments: list[str], victim: int = 0, deed: Deed | None = None
) -> list[int]:
    """Start all workers, one of them with a deed; return their exit codes."""
    addresses = [f"127.0.0.1:{port}" for port in free_ports(num_workers)]
    cluster = {"chief": addresses[:1], **({"worker": addresses[1:]} if num_workers > 1 else {})}
    pids = []
    for place in range(num_workers):
        if pid := os.fork():
            pids.append(pid)
            continue
        log = os.open(f"{folder}-{place}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        if num_workers > 1:
            here = {"type": "worker", "index": place - 1} if place else {"type": "chief", "index": 0}
            os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": here})
        if deed and place == victim:
            deed()
        code = task.main([f"--checkpoint-directory={folder}", *arguments])
        sys.stdout.flush()
        os._exit(code)
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


def spoil(folder: Path, number: int) -> None:
    """Delete the event log, or damage it, in turns."""
    if number % 2:
        shutil.rmtree(folder / "events")
        return
    for path in (folder / "events").iterdir():
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 3] + b'\n{"event": "evaluate", "step": 1e999}\n\xff\0null\n')


def main(num_workers: int, folder: Path, arguments: list[str]) -> None:
    """Train both runs; a different worker is ended each time, the last but one validation by SIGTERM."""
    codes = [attempt(folder / "undisturbed", num_workers, arguments)]
    last = checkpoints.load(str(folder / "undisturbed"), checkpoints.steps(str(folder / "undisturbed"))[0])
    *steps, before_last, end = (score.step for score in last.validations)
    deeds = [*map(in_validation, steps), stopped_in_validation(before_last), in_validation(end), before_the_result]
    for number, deed in enumerate(deeds):
        # Only the chief writes the result.
        victim = 0 if deed is before_the_result else number % num_workers
        codes.append(attempt(folder / "killed", num_workers, arguments, victim, deed))
        with contextlib.suppress(FileNotFoundError):
            spoil(folder / "killed", number)
    codes.append(attempt(folder / "killed", num_workers, arguments))
    print(json.dumps(codes))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
