"""Rehearses a training before its hours are spent, to show whether it resumes exactly.

A few steps run undisturbed, and once more in processes that stop after three, four and five steps. Each process has an
environment variable that says where to stop and which folder to use, and writes down all logged numbers and the whole
state after each step. These are compared bit for bit. If they differ, a second undisturbed pass shows which values
differ by themselves: they are noise, and do not count.
"""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

import exact_resume.state as states
from exact_resume.errors import InputError, RunError
from exact_resume.text import on_one_line, report

_VARIABLE = "EXACT_RESUME_REHEARSAL"
"""STEP:FOLDER of a process: it stops after the step, and uses this folder in place of the run's own."""
_NUM_STEPS = 10
_STOPS = (3, 4, 5)
"""Steps after which the rehearsal stops: odd and even, because two micro-batches may make one update."""
_NUM_SHOWN = 8
_FLOATS = re.compile(r"(array|tensor|jax) \S*float")
"""Values that noise makes useless; other arrays may be states of random generators that nothing uses."""
_Trace = dict[int, dict[str, str]]
"""Step -> name -> value."""


class Tracer:
    """Writes down what a process of the rehearsal computes."""

    def __init__(self, stop_step: int, folder: pathlib.Path) -> None:
        self.stop_step, self.directory = stop_step, str(folder / "run")
        self._path = folder / "trace.jsonl"

    @classmethod
    def of(cls, environment: Mapping[str, str], num_workers: int) -> "Tracer | None":
        """Return the tracer of this process; None: it is not a rehearsal.

        Raises:
            InputError: The variable is wrong, or there are several workers.
        """
        if not (given := environment.get(_VARIABLE)):
            return None
        step, _, folder = given.partition(":")
        if not (step.isdecimal() and os.path.isabs(folder) and os.path.isdir(folder)) or num_workers > 1:
            raise InputError(
                f"{_VARIABLE} is {given!r}, with {num_workers} worker(s); expected STEP:FOLDER and one worker; unset it"
            )
        return cls(int(step), pathlib.Path(folder))

    def note(self, step: int, logged: Mapping[str, Sequence[Any]], tree: Any, arrays: states.Arrays) -> None:
        """Write down a step.

        Args:
            step: Number of steps done.
            logged: Name -> the values of this step.
            tree: The state, as `State.take` returns it.
            arrays: The arrays of the state.
        """
        found = {f"logged {name!r}": repr([*map(float, values)])[1:-1] for name, values in logged.items()}
        for name, node in tree.items():
            for path, kind, value in states.leaves(node, name):
                text = json.dumps(value)
                if kind:
                    array = arrays[value["at"]]
                    digest = hashlib.sha256(array.tobytes()).hexdigest()[:16]
                    text = f"{kind} {value.get('type')} {array.shape} {digest}"
                found[f"state {path!r}"] = text
        with self._path.open("a") as file:
            print(json.dumps([step, found]), file=file)


def rehearse(words: Sequence[str]) -> int:
    """Rehearse a program, and report what differs.

    Args:
        words: The program and its arguments.

    Returns:
        0 if it resumes exactly, 1 if it does not, 2 if that cannot be judged.

    Raises:
        InputError: The program does not use `exact_resume.run`, or has too few steps.
        RunError: It fails.
    """
    with tempfile.TemporaryDirectory(prefix="exact_resume-rehearsal-") as folder:
        expected = _trained(words, pathlib.Path(folder, "first"), _NUM_STEPS)
        last = max(expected)
        stops = [each for each in _STOPS if each < last] or [each for each in (1,) if each < last]
        if not stops:
            raise InputError("the program ends after 1 step; expected at least 2, so that it can be stopped between")
        for stop in (*stops, last):
            found = _trained(words, pathlib.Path(folder, "resumed"), stop)
        noise = dict[str, str]()
        if different := _differences(expected, found):
            again = _trained(words, pathlib.Path(folder, "again"), _NUM_STEPS)
            noise = {name: before for name, _, before, _ in _differences(expected, again)}
    for name in [*noise][:_NUM_SHOWN]:
        report(f"noise: {name} differs between two undisturbed passes")
    different = [each for each in different if each[0] not in noise]
    for name, step, before, after in different[:_NUM_SHOWN]:
        since = max((each for each in stops if each < step), default=0)
        values = f": {after} instead of {before}" if name.startswith("logged") else ""
        # A pickle of the same objects may have other bytes after a resume.
        kind = "perhaps only another form" if before.startswith("bytes ") else "different"
        report(f"{kind}: {name} first after step {step}, with a stop after step {since}{values}")
    stopped = f"{last} steps with stops after {', '.join(map(str, stops))}"
    texts = {name: {step.get(name, "") for step in expected.values()} for name in expected[last] if name not in noise}
    is_form = all(before.startswith("bytes ") for _, _, before, _ in different)
    is_logged = any(name.startswith("logged") for name in texts)
    if different and not is_form:
        report(f"does not resume exactly: {stopped}; a cause of these values is not in state, or is not restored")
        return 1
    if any(map(_FLOATS.match, noise.values())):
        report("cannot be judged: arrays of numbers differ without a stop; seed all random numbers, sum in one order")
        return 2
    if (different and not is_logged) or all(len(each) == 1 for each in texts.values()):
        report(
            "cannot be judged: no number that changes is compared; log one that the step computes, run.log(loss=...)"
        )
        return 2
    report(f"resumes exactly: {stopped}, {len(texts)} values compared bit for bit")
    return 0


def _trained(words: Sequence[str], folder: pathlib.Path, stop: int) -> _Trace:
    """Run the program until a step, from where an earlier process has stopped in the folder."""
    folder.mkdir(exist_ok=True)
    variables = os.environ | {_VARIABLE: f"{stop}:{folder}"}
    printed, trace = [folder / "stdout", folder / "stderr"], folder / "trace.jsonl"
    with printed[0].open("w") as stdout, printed[1].open("w") as stderr:
        try:
            code = subprocess.run(
                words, env=variables, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, check=False
            ).returncode
        except OSError as error:
            raise InputError(f"{words[0]!r} cannot be started ({error.strerror}); give a program") from None
    found = dict(map(json.loads, trace.read_text().splitlines())) if trace.exists() else {}
    # 143 after the step; 0 if the run has finished before.
    if code not in (0, 143):
        raise RunError(
            f"the program failed with {code} after step {max(found, default=0)}, and was to stop after {stop}:"
            f" {on_one_line(_last_line(printed), 400)}"
        )
    if not found:
        raise InputError("the program ended without a step of exact_resume.run; give one that trains with it")
    return found


def _last_line(printed: Sequence[pathlib.Path]) -> str:
    """Return the last line of the files; a line that redraws itself, such as a progress bar, only without another."""
    lines = [
        line.rstrip("\r")
        for each in printed
        for line in each.read_bytes().decode(errors="replace").split("\n")
        if line.strip()
    ]
    drawn = lines[-1].rpartition("\r")[2] if lines else ""
    return next((each for each in reversed(lines) if "\r" not in each), drawn)


def _differences(expected: _Trace, found: _Trace) -> list[tuple[str, int, str, str]]:
    """Return name, first step and both values of each difference."""
    first = dict[str, tuple[str, int, str, str]]()
    for step in sorted(expected.keys() | found.keys()):
        before, after = expected.get(step, {}), found.get(step, {})
        for name in before | after:
            if before.get(name) != after.get(name):
                first.setdefault(name, (name, step, before.get(name, "nothing"), after.get(name, "nothing")))
    return [*first.values()]
