"""What the first steps show: the bottleneck, and whether XLA is worthwhile."""

import functools
import math

import pytest
import tensorflow as tf

from tests.support.learners import NUM_STEPS, make_learner
from trainer.data.examples import Examples
from trainer.data.sampler import Sampler
from trainer.loop.speed import FirstSteps
from trainer.loop.xla.timing import time_xla
from trainer.loop.xla.trial import Outcome


def test_the_bottleneck_is_logged_and_xla_is_tried_on_long_runs_only(training: Examples, sampler: Sampler) -> None:
    messages: list[str] = []
    for num_steps, is_tried in ((NUM_STEPS, False), (10**7, True)):
        learner = make_learner()
        first_steps = FirstSteps(
            learner,
            training,
            sampler,
            num_steps=num_steps,
            trial=functools.partial(time_xla, learner, training, sampler),
            log_event=lambda event, message: messages.append(message),
        )
        first_steps(0.01)
        assert ("XLA" in messages[-1]) == is_tried
        assert "1 device: 3,200 img/s, 3,200 per device; the input alone reaches" in messages[-1 - is_tried]
        assert "is the bottleneck" in messages[-1 - is_tried]
    assert "times as fast" in messages[-1]


def test_a_model_that_xla_cannot_compile_trains_without_it(
    training: Examples, sampler: Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **options: object) -> float:
        raise tf.errors.InvalidArgumentError(None, None, "Detected unsupported operations\nand more")

    learner = make_learner()
    messages: list[str] = []
    monkeypatch.setattr(learner, "time_step", fail)
    first_steps = FirstSteps(
        learner,
        training,
        sampler,
        num_steps=10**7,
        trial=functools.partial(time_xla, learner, training, sampler),
        log_event=lambda event, message: messages.append(message),
    )
    first_steps(0.01)
    assert messages[-1] == (
        "XLA cannot compile this model here (Detected unsupported operations); continuing without it"
    )
    assert learner.train(learner.batches(training, sampler, NUM_STEPS), 1).losses[0] > 0


def test_all_workers_agree_on_the_outcome_of_a_trial(
    training: Examples, sampler: Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    faster = Outcome(without=2.0, compiled=1.0)
    learner, messages, used, sums = make_learner(), [], [], []
    monkeypatch.setattr(learner, "use_xla", used.append)
    # The votes, then the outcomes, as sums over two workers.
    monkeypatch.setattr(learner, "add_up", lambda own: [a + b for a, b in zip(own, sums.pop(), strict=True)])
    for outcome, others, is_used, message in (
        (faster, [2.0, 1.0], True, "XLA: 2.00 times as fast; switched on"),
        (faster, [2.0, 3.0], False, "XLA: 1.00 times as fast; not used"),
        (faster, [0.0, math.inf], False, "another worker cannot use XLA; continuing without it"),
        (Outcome(reason="XLA was not ready"), [2.0, 1.0], False, "XLA was not ready; continuing without it"),
    ):
        used.clear()
        sums[:] = [others, [1.0]]
        FirstSteps(
            learner,
            training,
            sampler,
            num_steps=10**7,
            trial=lambda outcome=outcome: outcome,
            log_event=lambda event, message: messages.append(message),
        )(0.01)
        assert used == [True] * is_used
        assert messages[-1] == message


def test_xla_is_not_compiled_for_a_run_that_does_little(
    training: Examples, sampler: Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, compiled = make_learner(), []

    def half_a_second(iterator: object, *, xla: bool) -> float:
        compiled.append(xla)
        return 0.5

    monkeypatch.setattr(learner, "time_step", half_a_second)
    outcome = time_xla(learner, training, sampler, num_steps=100, min_seconds=60.0)
    assert outcome == Outcome(without=0.5, reason="XLA was not tried, because the devices have little to do")
    assert compiled == [False]
    assert time_xla(learner, training, sampler, num_steps=200, min_seconds=60.0) == Outcome(without=0.5, compiled=0.5)
