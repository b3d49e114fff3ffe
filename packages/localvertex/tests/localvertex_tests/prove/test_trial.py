"""A run that ended before its fault is not taken for one that has survived it."""

import threading
from pathlib import Path

import numpy as np
import pytest

from localvertex.jobs import JobState, Outcome
from localvertex.jobs.goodput.timeline import Span
from localvertex.jobs.status import JobStatus, ReplicaStatus
from localvertex.prove.comparison import Judgement, compare
from localvertex.prove.disturbance import ENDED, Disturbance
from localvertex.prove.faults import FaultKind, Planned
from localvertex.prove.numbers import Point
from localvertex.prove.outputs import Observation
from localvertex.prove.prove import judge
from localvertex.prove.trial import ProofRun


def ended(folder: Path, kind: FaultKind, target: str, *exit_codes: int) -> ProofRun:
    """Return a run of two replicas, the first of which had processes with these exit codes; the fault was sent."""
    spans = tuple(Span(start=0.0, end=1.0, exit_code=code) for code in exit_codes)
    replicas = tuple(
        ReplicaStatus(name=f"workerpool{number}-0", is_running=False, num_starts=1, spans=each)
        for number, each in enumerate((spans, (Span(start=0.0, end=1.0, exit_code=0),)))
    )
    disturbance = Disturbance(
        planned=Planned(kind=kind, fraction=0.5, target=target, draw=1),
        pace=None,
        checkpoints=folder,
        log=folder / "log",
        cancel=threading.Event(),
        problem="",
    )
    disturbance.close()
    outcome = Outcome(status=JobStatus(state=JobState.SUCCEEDED, replicas=replicas))
    return ProofRun(base=folder, logs=[], outcomes=[outcome], disturbance=disturbance)


@pytest.mark.parametrize("kind", [FaultKind.END, FaultKind.TORN, FaultKind.BIT_FLIPPED, FaultKind.OTHER_WORKERS])
def test_a_kill_that_comes_too_late_is_no_fault(tmp_path: Path, kind: FaultKind) -> None:
    assert ended(tmp_path, kind, "all", 0).problem == ENDED
    assert ended(tmp_path, kind, "all", 137, 0).problem == ""


def test_the_replica_that_is_killed_is_the_one_that_counts(tmp_path: Path) -> None:
    assert ended(tmp_path, FaultKind.ONE_REPLICA, "workerpool0-0", 137, 0).problem == ""
    assert ended(tmp_path, FaultKind.ONE_REPLICA, "workerpool1-0", 137, 0).problem == ENDED


def test_numbers_that_depend_on_the_number_of_workers_are_not_accused(tmp_path: Path) -> None:
    def found(value: float) -> Observation:
        return {"x|loss": [Point(name="x|loss", key=(1,), value=np.array(value))]}

    trial = ended(tmp_path, FaultKind.OTHER_WORKERS, "all", 137, 0)
    different = compare([found(1.0)] * 2, found(2.0))
    assert judge(FaultKind.OTHER_WORKERS, trial, different)[0] is Judgement.CANNOT_BE_JUDGED
    assert judge(FaultKind.MIDDLE, trial, different)[0] is Judgement.DIFFERENT
    assert judge(FaultKind.OTHER_WORKERS, trial, compare([found(1.0)] * 2, found(1.0)))[0] is Judgement.EQUAL


def test_a_program_may_end_by_itself_after_a_signal(tmp_path: Path) -> None:
    trial = ended(tmp_path, FaultKind.SIGTERM, "all", 0)
    assert trial.problem == ""
    observation = {"x|loss": [Point(name="x|loss", key=(1,), value=np.array(0.5))]}
    result = compare([observation] * 2, observation)
    reason = "the training ended within the grace time, so no process was restarted"
    assert judge(FaultKind.SIGTERM, trial, result) == (Judgement.EQUAL, reason)
    name = "output/model/m.pkl|"
    models = [observation | {name: [Point(name=name, value=f"sha256 {letter}")]} for letter in "aab"]
    verdict, reason = judge(FaultKind.MIDDLE, trial, compare(models[:2], models[2]))
    assert (verdict, reason.partition(":")[0]) == (
        Judgement.CANNOT_BE_JUDGED,
        "the bytes of the model differ, and no reader reads it",
    )
    assert judge(FaultKind.NOTICE, ended(tmp_path, FaultKind.NOTICE, "all", 137, 0), result) == (Judgement.EQUAL, "")
