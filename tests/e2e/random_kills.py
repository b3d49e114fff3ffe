"""Kill localvertex at random moments of random runs, resume them, and compare the end with an undisturbed run's.

`python -m tests.e2e.random_kills --runs 500 --seed 1` prints the figures, and stops at the first wrong run. Each kill
is a SIGKILL of the process of localvertex: at a random time, or by itself just before or after it reports a change.
"""

import argparse
import json
import os
import random
import shutil
import signal
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

from kfp import compiler

import localvertex
from localvertex._base.compiled.load import load
from localvertex._base.compiled.spec import Component, Pipeline
from localvertex.runner.display import Display
from localvertex.store import record
from localvertex.store.task import State, Task
from tests.e2e.random_pipelines import IMAGE, random_pipeline

_FINISHED = ("SUCCEEDED", "SKIPPED")
_MAX_KILLS = 3
_POLL_SECONDS = 0.005
_AT_THE_END = "after the end of the run, before its page"


class Reports(Display):
    """Writes what localvertex reports into a file; may kill this process at a change."""

    def __init__(self, path: Path, *, kill_at: int | None, kills_before: bool) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._left, self._kills_before = kill_at, kills_before

    def on_change(self, task: Task) -> None:
        """Write a step with its state."""
        if self._left is not None:
            self._left -= 1
        if self._left == 0 and self._kills_before:
            os.kill(os.getpid(), signal.SIGKILL)
        if task.is_step and task.path:
            os.write(self._file, f"{task.label} {task.state}\n".encode())
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


class KilledRun:
    """One random run."""

    def __init__(self, folder: Path, seed: int, figures: Counter[str]) -> None:
        self._folder, self._seed, self._figures = folder, seed, figures
        self._draw = random.Random(seed)
        self._file = folder / "pipeline.json"
        self._mark = uuid4().hex
        self._finished = set[str]()
        self._is_killed_at_end = False
        self._reports = folder / "reports.txt"
        self._run_dir = folder / "runs" / "killed"

    def check(self) -> None:
        """Run the pipeline undisturbed and with kills, and compare."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiler.Compiler().compile(random_pipeline(self._seed), str(self._file))
        start = time.monotonic()
        os.waitpid(self._start("undisturbed", self._folder / "undisturbed.txt", resumes=False), 0)
        seconds = time.monotonic() - start
        expected = record.read(self._folder / "runs" / "undisturbed")
        self._reports.touch()
        num_kills = self._draw.randint(1, _MAX_KILLS)
        for number in range(_MAX_KILLS + 1):
            known = len(self._starts())
            is_killed = self._session(seconds, is_resume=number > 0, may_kill=number < num_kills)
            self._check_repeated(known)
            if not is_killed:
                break
        self._wait_for_processes()
        self._compare(expected, record.read(self._run_dir))

    def _start(self, run_id: str, reports: Path, *, resumes: bool, **kill: Any) -> int:
        """Start localvertex in a process of its own and return the process id."""
        child = os.fork()
        if child:
            return child
        code = 70
        try:
            output = os.open(self._folder / f"{run_id}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.environ["RUN_MARK"] = self._mark
            display = Reports(reports, **({"kill_at": None, "kills_before": False} | kill))
            options = localvertex.Options(
                work_dir=self._folder / "runs",
                run_id=None if resumes else run_id,
                use_cache=False,
                grace_seconds=0.5,
                max_backoff_seconds=0.05,
                max_parallel=3,
                command_prefixes={IMAGE: ("env",)},
            )
            if resumes:
                content = localvertex.resume(run_id, options=options, display=display)
            else:
                values = {"log": str(self._folder / f"{run_id}-starts.txt"), "number": self._seed % 1000}
                content = localvertex.run(self._file, parameters=values, options=options, display=display)
            code = 0 if content["state"] in ("SUCCEEDED", "FAILED") else 71
        finally:
            os._exit(code)

    def _session(self, seconds: float, *, is_resume: bool, may_kill: bool) -> bool:
        """Run or resume until the end or a kill; return whether it was killed."""
        at_change, before = self._draw.random() < 0.5, self._draw.random() < 0.5
        kill_at = self._draw.randint(1, 25) if may_kill and at_change else None
        is_new = not (self._run_dir / record.FILE).exists()
        reports = {"kill_at": kill_at, "kills_before": before}
        child = self._start("killed", self._reports, resumes=is_resume and not is_new, **reports)
        deadline = time.monotonic() + self._draw.uniform(0, seconds) if may_kill and not at_change else None
        while True:
            pid, status = os.waitpid(child, os.WNOHANG)
            if not pid and deadline is not None and time.monotonic() >= deadline:
                os.kill(child, signal.SIGKILL)
                pid, status = os.waitpid(child, 0)
            self._check_record()
            if pid:
                break
            time.sleep(_POLL_SECONDS)
        if os.WIFSIGNALED(status):
            phase = self._phase(is_resume)
            self._figures[f"kills: {phase}"] += 1
            self._is_killed_at_end |= phase == _AT_THE_END
            return True
        code = os.waitstatus_to_exitcode(status)
        assert code == 0, (code, (self._folder / "killed.log").read_text()[-2000:])
        self._figures["resumes to the end" if is_resume else "ended before the kill"] += 1
        return False

    def _check_record(self) -> None:
        """Check that the record is readable and contains what has been reported."""
        # In this order: what is reported after it was read does not count.
        reported = _last_states(self._reports)
        if not (self._run_dir / record.FILE).exists():
            assert not reported
            return
        content = record.read(self._run_dir)
        self._figures["records read"] += 1
        states = {each["path"]: each["state"] for each in content["tasks"]}
        states |= {each["path"]: each["state"] for each in content[record.UNRESTORED]}
        for path, state in reported.items():
            known = states.get(path)
            assert state not in _FINISHED or known in _FINISHED or path in self._again(content), (path, state, known)

    def _again(self, content: dict[str, Any]) -> set[str]:
        """Return the steps that run again; `_check_repeated` checks that they may."""
        return {each["path"] for each in content["tasks"] if each["num_resumes"] and each["start_time"]}

    def _phase(self, is_resume: bool) -> str:
        """Describe the moment of a kill by the record that it left."""
        if not (self._run_dir / record.FILE).exists():
            return "before the record existed"
        content = record.read(self._run_dir)
        steps = [each["state"] for each in content["tasks"] if each["kind"] == "step"]
        if content["state"] == State.SUCCEEDED or (content["state"] == State.FAILED and content["end_time"]):
            return _AT_THE_END
        if content[record.UNRESTORED]:
            return "resumed, before all finished steps were restored"
        when = "resumed, " if is_resume else ""
        if "RUNNING" in steps:
            return f"{when}while steps ran"
        return f"{when}before the first step" if not {*_FINISHED} & {*steps} else f"{when}between steps"

    def _starts(self) -> list[str]:
        """Return the paths of the steps that have started, in that order."""
        path = self._folder / "killed-starts.txt"
        lines = path.read_text().splitlines() if path.exists() else []
        return [os.path.relpath(line, self._run_dir) for line in lines]

    def _check_repeated(self, known: int) -> None:
        """Check that no finished step was started again in the last session, unless a step before it was."""
        starts = self._starts()
        upstream = _upstream_of(load(self._file).pipeline)
        for index in range(known, len(starts)):
            step = starts[index]
            if step in self._finished:
                first = max(number for number in range(known) if starts[number] == step)
                again = {each for each in starts[first:index] if each != step and upstream(step, each)}
                assert again, f"{step} had finished and was started again"
                self._figures["steps after a repeated step"] += 1
        self._figures["steps started"] += len(starts) - known
        self._finished = {path for path, state in _last_states(self._reports).items() if state in _FINISHED}
        self._figures["steps restored"] += len(self._finished & set(starts[:known]))

    def _wait_for_processes(self) -> None:
        """Check that no process of the run is left."""
        deadline = time.monotonic() + 300
        while left := _processes_of(self._mark):
            assert time.monotonic() < deadline, left
            time.sleep(0.02)

    def _compare(self, expected: dict[str, Any], found: dict[str, Any]) -> None:
        """Check that a run has ended as the undisturbed one."""
        assert not found[record.UNRESTORED]
        names = ("state", "error", "failed_task", "outputs", "metrics")
        assert {name: found[name] for name in names} == {name: expected[name] for name in names}
        assert _results(found) == _results(expected)
        finished = {each["path"] for each in found["tasks"] if each["kind"] == "step" and each["state"] in _FINISHED}
        assert finished <= set(self._starts()), "a step succeeded without a start"
        left = [*self._run_dir.glob("journal*"), *self._run_dir.glob(".run.*.partial")]
        assert not left or self._is_killed_at_end, left
        assert json.loads((self._run_dir / record.FILE).read_text()) == found


def _last_states(reports: Path) -> dict[str, str]:
    """Return the state that was reported last for each step; a torn last line counts as not reported."""
    lines = reports.read_text().split("\n")[:-1]
    return dict(line.rsplit(" ", 1) for line in lines)


def _results(content: dict[str, Any]) -> dict[str, Any]:
    """Return state and values by task, without those that differ from run to run."""
    return {
        each["path"]: (
            each["state"],
            {name: value for name, value in each["outputs"]["parameters"].items() if name != "gcp_resources"},
        )
        for each in content["tasks"]
    }


def _upstream_of(pipeline: Pipeline) -> Callable[[str, str], bool]:
    """Return a function of two paths of steps: whether the first one depends on the second one."""

    def depends(component: Component, own: list[str], other: list[str]) -> bool:
        if component.dag is None or not own or not other:
            return False
        name, tasks = own[0], component.dag.tasks
        if name == other[0]:
            inner = pipeline.components[tasks[name].component]
            skipped = 2 if tasks[name].iterator else 1
            return own[:skipped] == other[:skipped] and depends(inner, own[skipped:], other[skipped:])
        found, left = set[str](), [name]
        while left:
            new = {each for each in tasks[left.pop()].dependencies if each in tasks} - found
            found |= new
            left += new
        return other[0] in found

    return lambda step, other: depends(pipeline.root, step.split("/"), other.split("/"))


def _processes_of(mark: str) -> list[int]:
    """Return the processes that inherited the mark, except zombies."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and mark.encode() in (folder / "environ").read_bytes():
                found += (
                    [int(folder.name)] if (folder / "stat").read_text().rpartition(")")[2].split()[0] != "Z" else []
                )
        except OSError:
            continue
    return found


def check(runs: int, seed: int) -> Counter[str]:
    """Check so many runs, and return what happened in them.

    Raises:
        AssertionError: One is wrong; the message begins with its seed, and its files are kept.
    """
    figures: Counter[str] = Counter()
    for number in range(seed, seed + runs):
        folder = Path(tempfile.mkdtemp(prefix=f"random-kills-{number}-"))
        try:
            KilledRun(folder, number, figures).check()
        except Exception as error:
            raise AssertionError(f"seed {number}, files in {folder}: {error}") from error
        shutil.rmtree(folder)
        figures["runs"] += 1
    return figures


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1, help="seed of the first run; each has the next one")
    options = parser.parse_args()
    start = time.monotonic()
    figures = check(options.runs, options.seed)
    for name, count in sorted(figures.items()):
        print(f"{count:8} {name}")
    print(f"{time.monotonic() - start:8.0f} seconds")


if __name__ == "__main__":
    main()
