"""Judges whether a restarted training has lost steps that a complete save had.

A restart from before the last save is only suspicious: the program may load its best checkpoint, or save more than
checkpoints. It is accused if it never saves, if it trains from the beginning even with the checkpoints of a finished
run, if it continues from the newer ones when the older ones are away, or if it loads those of its first attempt only.
"""

import itertools
from collections.abc import Callable, Sequence

from localvertex._base import linux
from localvertex.jobs.job import PRIMARY
from localvertex.prove.comparison import shown_key
from localvertex.prove.disturbance import Disturbance, Save
from localvertex.prove.numbers import Key, Point
from localvertex.prove.outputs import Observation
from localvertex.prove.trial import ProofRun
from localvertex.prove.watch import State, read_state, without_numbers

END: Key = (float("inf"),)
"""The position at which a finished training resumes."""
_MIN_STEPS = 3
FirstStep = Callable[[State], Key | None]
"""Starts the training undisturbed with these checkpoints, and returns its first step; None if it failed."""


def curve(observation: Observation) -> str:
    """Return the name of the longest series of values of the log whose steps grow; empty without one."""
    lengths = {"": 0}
    for name, points in observation.items():
        keys = [each.key for each in points]
        if name.startswith(f"{PRIMARY}|") and "|event " not in name and () not in keys and sorted({*keys}) == keys:
            lengths[name] = len(keys)
    return max(lengths, key=lengths.__getitem__)


def lost(trial: ProofRun, pace: Disturbance, points: Sequence[Point], first_step: FirstStep) -> str:
    """Return what a killed training has lost; empty if nothing, or if that is not known.

    Args:
        trial: The run with the kills, to its end.
        pace: Pace of an undisturbed run, whose checkpoints exist.
        points: The values of the run that show its steps.
        first_step: Starts the training.
    """
    saves, begin = trial.disturbance.saves, points[0].key if points else ()
    for kill in trial.disturbance.kills:
        before = [each.key for each in points if each.process == kill.process]
        resumed = next((each.key for each in points if each.process > kill.process), END)
        if len(before) < _MIN_STEPS or resumed >= before[-1]:
            continue
        # Elsewhere than on Linux, no save is seen.
        if not saves and resumed == begin and linux.is_used():
            return "the training never saved: no file was written in AIP_CHECKPOINT_DIR"
        num_lines = saves[kill.num_whole - 1].num_lines if kill.num_whole else 0
        whole = next((each.key for each in reversed(points) if each.line < num_lines), resumed)
        if resumed >= whole:
            continue
        if resumed == begin:
            # A program may write its checkpoints only later, and remove them at the end.
            is_all = _series(pace.saves[:-1]) <= _series(saves[: kill.num_whole])
            is_anew = is_all and first_step(read_state(pace.checkpoints)) == begin
            reason = "no checkpoint is loaded, even of a finished run" if is_anew else ""
        else:
            reason = _first_attempt(trial, points) or _oldest(pace, resumed, first_step)
        if reason:
            at = shown_key(whole)
            return f"it resumed at {shown_key(resumed)}, although a save was complete after {at}: {reason}"
    return ""


def _series(saves: Sequence[Save]) -> set[str]:
    return {without_numbers(name) for save in saves for name in save.names}


def _first_attempt(trial: ProofRun, points: Sequence[Point]) -> str:
    """Compare what two processes have saved, each in a folder of its own, with what the third one has loaded."""
    kills, saves = trial.disturbance.kills, trial.disturbance.saves
    starts = {each.process: each.key for each in reversed(points) if each.process}
    if len(kills) < 2 or len({*starts.values()}) != 1:
        return ""
    first, second = _common(saves[: kills[0].num_saves]), _common(saves[kills[0].num_saves : kills[1].num_saves])
    if not (first and second) or first & second:
        return ""
    return f"the checkpoints in {min(first)} are loaded, not those in {min(second)}"


def _common(saves: Sequence[Save]) -> set[str]:
    """Return the folders that all of two or more saves have written in."""
    folders = [{each.partition("/")[0] for each in save.names if "/" in each} for save in saves]
    return set.intersection(*folders) if len(saves) > 1 else set()


def _oldest(pace: Disturbance, resumed: Key, first_step: FirstStep) -> str:
    """Start with one to three of the newest saves alone: if always the oldest is loaded, age decides, not the loss."""
    state = read_state(pace.checkpoints)
    patterns = [*map(without_numbers, state)]
    times = {path: each[1] for path, each in state.items() if patterns.count(without_numbers(path)) > 1}
    # Since the end of the save before.
    ends = [0, *(each.end_ns for each in pace.saves)]
    since = [a for a, b in itertools.pairwise(ends) if any(a < each <= b for each in times.values())]
    steps = [resumed]
    for end in since[: -_MIN_STEPS - 1 : -1] if len(since) > _MIN_STEPS else ():
        steps.insert(
            1, first_step({path: each for path, each in state.items() if times.get(path, end + 1) > end}) or ()
        )
        if steps[1] <= resumed:
            return ""
    return "the oldest checkpoint is loaded, not the newest" if sorted({*steps}) == steps != [resumed] else ""
