"""The named causes, from small trainings in this process whose second half has one defect."""

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from localvertex.prove.causes import Cause, causes
from localvertex.prove.comparison import Judgement, compare
from localvertex.prove.disturbance import Disturbance
from localvertex.prove.faults import FaultKind
from localvertex.prove.numbers import Point
from localvertex.prove.outputs import Observation
from localvertex.prove.trial import ProofRun

NUM_STEPS, RESTART, EPOCH = 80, 43, 20


def values(defect: str, seed: int) -> Iterator[tuple[str, int, float]]:
    """Train, and yield the name, step and value of each line of the log."""
    data = np.random.default_rng(seed)
    x = data.normal(size=(400, 5))
    y = x @ data.normal(size=5) + data.normal(size=400)
    weights, velocity, average = np.zeros(5), np.zeros(5), np.zeros(5)
    shift = 0
    for step in range(NUM_STEPS + 20 * (defect == "stopping")):
        is_hit = step == RESTART
        if is_hit and defect == "optimizer":
            velocity = 0 * velocity
        if is_hit and defect == "weights":
            weights = 0.4 * weights
        if is_hit and defect == "statistics":
            average = 0 * average
        if is_hit and defect == "schedule":
            shift = RESTART
        order = [seed, step - 30 * (defect == "order" and step >= RESTART)]
        if defect == "next order" and step >= (RESTART // EPOCH + 1) * EPOCH:
            order = [seed, step, 1]
        rows = np.random.default_rng(order).integers(400, size=16)
        kept = np.random.default_rng([seed, step, defect == "random" and step >= RESTART]).random((16, 5)) > 0.2
        inputs = x[rows] * kept
        error = inputs @ weights - y[rows]
        rate = 0.1 * 0.97 ** (step - shift)
        yield f"epoch # step # loss #|{step // EPOCH}|loss", step, float(np.mean(error**2))
        yield f"epoch # step # lr #|{step // EPOCH}|lr", step, rate
        velocity = 0.8 * velocity + inputs.T @ error / 16
        weights = weights - rate * velocity
        average = 0.9 * average + 0.1 * weights
        if step % 10 == 9:
            yield "step # val_loss #||val_loss", step, float(np.mean((x @ average - y) ** 2))


def observed(defect: str, seed: int, *hidden: str) -> Observation:
    found: Observation = {}
    for name, step, value in values(defect, seed):
        words, epoch, own_name = name.split("|")
        if own_name not in hidden:
            key = (float(epoch), float(step)) if epoch else (float(step),)
            process = int(bool(defect) and step >= RESTART)
            name = f"workerpool0-0|{words}|{own_name}"
            found.setdefault(name, []).append(Point(name=name, key=key, process=process, value=np.array(value)))
    return found


@pytest.fixture
def trial(tmp_path: Path) -> ProofRun:
    disturbance = Disturbance(planned=None, pace=None, checkpoints=tmp_path, log=tmp_path, cancel=threading.Event())
    disturbance.close()
    return ProofRun(base=tmp_path, logs=[], outcomes=[], disturbance=disturbance)


BY_CHANCE = {Cause.RANDOM_STATE, Cause.DATA_ORDER}
FIRST = {*BY_CHANCE, Cause.WEIGHTS, Cause.STEPS}
SECOND = {Cause.OPTIMIZER, Cause.GRADIENTS}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("defect", "hidden", "expected"),
    [
        ("order", "", FIRST),
        ("random", "", FIRST),
        ("next order", "", BY_CHANCE),
        ("optimizer", "", SECOND),
        ("optimizer", "lr", {*SECOND, Cause.SCHEDULE}),
        ("schedule", "", {Cause.SCHEDULE}),
        ("schedule", "lr", {*SECOND, Cause.SCHEDULE}),
        ("weights", "", FIRST),
        ("statistics", "", {Cause.WEIGHTS}),
        ("stopping", "", {Cause.STOPPING}),
    ],
)
def test_the_right_cause_is_among_those_that_are_named(
    trial: ProofRun, monkeypatch: pytest.MonkeyPatch, defect: str, hidden: str, expected: set[Cause], seed: int
) -> None:
    monkeypatch.setattr(ProofRun, "exit_codes", [137, 0])
    compared = compare([observed("", seed, hidden)] * 2, observed(defect, seed, hidden))
    found = {*causes(FaultKind.MIDDLE, Judgement.DIFFERENT, trial, compared)}
    assert found == expected


@pytest.mark.parametrize(("num_left_out", "expected"), [(0, {Cause.DATA_ORDER}), (8, {Cause.STEPS, Cause.DATA_ORDER})])
def test_an_epoch_that_is_left_out_is_no_matter_of_the_order_alone(
    trial: ProofRun, monkeypatch: pytest.MonkeyPatch, num_left_out: int, expected: set[Cause]
) -> None:
    """As in github.com/verl-project/verl/issues/7401: the next epoch has no batch, and the run ends an epoch early."""
    monkeypatch.setattr(ProofRun, "exit_codes", [137, 0])

    def logged(shift: int, num_steps: int) -> Observation:
        points = observed("", 0)
        drawn = np.random.default_rng(5).permutation(8 * 2 * NUM_STEPS).reshape(-1, 8)
        for own_name in ("loss", "examples"):
            name = f"workerpool0-0|epoch # step # {own_name} #|{own_name}"
            points[name] = [
                Point(
                    name=name,
                    key=(float(step),),
                    process=int(step >= RESTART),
                    value=rows if own_name == "examples" else np.array([rows.mean() / 7]),
                )
                for step in range(num_steps)
                for rows in [drawn[step + shift * (step >= RESTART)]]
            ]
        return {name: each for name, each in points.items() if "examples" in name or name.endswith("|loss")}

    compared = compare([logged(0, NUM_STEPS)] * 2, logged(9, NUM_STEPS - num_left_out))
    assert {*causes(FaultKind.MIDDLE, Judgement.DIFFERENT, trial, compared)} == expected


@pytest.mark.parametrize("defect", ["order", "optimizer"])
def test_means_of_epochs_show_no_cause(trial: ProofRun, monkeypatch: pytest.MonkeyPatch, defect: str) -> None:
    monkeypatch.setattr(ProofRun, "exit_codes", [137, 0])

    def means(defect: str) -> Observation:
        (name, points), *_ = observed(defect, 0, "lr", "val_loss").items()
        chunks = [points[at : at + 5] for at in range(0, len(points), 5)]
        name = "workerpool0-0|epoch # loss #|loss"
        return {
            name: [
                Point(
                    name=name,
                    key=(float(at),),
                    process=each[-1].process,
                    value=np.mean([float(point.value) for point in each]),
                )
                for at, each in enumerate(chunks)
            ]
        }

    compared = compare([means("")] * 2, means(defect))
    assert compared.differences
    assert causes(FaultKind.MIDDLE, Judgement.DIFFERENT, trial, compared) == []


def with_files(observation: Observation, **arrays: object) -> Observation:
    names = {name: f"output/model/{name.replace('__', '.')}.npz|{name.partition('__')[2]}" for name in arrays}
    return observation | {full: [Point(name=full, value=np.asarray(arrays[name]))] for name, full in names.items()}


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        # Lines without steps.
        (
            {name: [Point(name=name, value=each.value) for each in points] for name, points in observed("", 0).items()},
            {
                name: [Point(name=name, process=each.process, value=each.value) for each in points]
                for name, points in observed("optimizer", 0).items()
            },
        ),
        # Equal weights, other metrics.
        (
            with_files(observed("", 0), model__w=[1.0, 2.0], metrics__loss=0.5),
            with_files(observed("none", 0), model__w=[1.0, 2.0], metrics__loss=0.7),
        ),
        # Another replica.
        (
            {name.replace("pool0", "pool1"): points for name, points in observed("", 0).items()} | observed("", 0),
            {name.replace("pool0", "pool1"): points for name, points in observed("random", 0).items()}
            | observed("none", 0),
        ),
        # Weights whose names are those of examples.
        *(
            (
                with_files(observed("", 0), **{f"model__{name}": np.arange(5) + 0.5}),
                with_files(observed("none", 0), **{f"model__{name}": np.arange(5) + 0.7}),
            )
            for name in ("batch_norm.weight", "position_ids", "num_batches_tracked")
        ),
    ],
    ids=["no steps", "metrics", "replica", "batch_norm", "position_ids", "num_batches_tracked"],
)
def test_no_cause_is_better_than_a_false_one(
    trial: ProofRun, monkeypatch: pytest.MonkeyPatch, expected: Observation, found: Observation
) -> None:
    monkeypatch.setattr(ProofRun, "exit_codes", [137, 0])
    compared = compare([expected] * 2, found)
    assert compared.differences
    assert causes(FaultKind.MIDDLE, Judgement.DIFFERENT, trial, compared) == []
    assert (compared.examples_repeated, compared.examples_never_seen) == (None, None)
