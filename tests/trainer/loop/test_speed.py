"""What the first steps show: the bottleneck, and whether XLA is worthwhile."""

import pytest
import tensorflow as tf

from tests.support.learners import NUM_STEPS, make_learner
from trainer.data.examples import Examples
from trainer.data.sampler import Sampler
from trainer.loop.speed import FirstSteps


def test_the_bottleneck_is_logged_and_xla_is_tried_on_long_runs_only(training: Examples, sampler: Sampler) -> None:
    messages: list[str] = []
    for num_steps, is_tried in ((NUM_STEPS, False), (10**7, True)):
        first_steps = FirstSteps(
            make_learner(),
            training,
            sampler,
            num_steps=num_steps,
            try_xla=True,
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
        try_xla=True,
        log_event=lambda event, message: messages.append(message),
    )
    first_steps(0.01)
    assert messages[-1] == (
        "XLA cannot compile this model here (Detected unsupported operations); continuing without it"
    )
    assert learner.train(learner.batches(training, sampler, NUM_STEPS), 1).losses[0] > 0
