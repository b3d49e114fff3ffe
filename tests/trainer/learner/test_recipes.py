"""Recipes in training: everything Keras keeps is in the checkpoint, and averages are what is evaluated and exported."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from localvertex._base.userinput.errors import UserError
from tests.support.learners import NUM_STEPS, make_learner
from trainer.checkpoints import variables
from trainer.config import TrainConfig
from trainer.data.examples import Examples
from trainer.data.sampler import Sampler
from trainer.learner import keras_internals, optimizers
from trainer.learner.learner import Learner
from trainer.loop.training import Training
from trainer.models.recipes import OPTIMIZERS, SCHEDULES

TINY = "tests.support.tiny_network:build"
STATEFUL = {"use_ema": True, "gradient_accumulation_steps": 3, "global_clipnorm": 1.0, "weight_decay": 0.01}
CONFIGS: dict[str, dict[str, Any]] = {
    "CosineDecay": {"initial_learning_rate": 0.0, "warmup_target": 0.1, "warmup_steps": 3},
    "CosineDecayRestarts": {"initial_learning_rate": 0.1, "first_decay_steps": 3},
    "ExponentialDecay": {"initial_learning_rate": 0.1, "decay_rate": 0.5},
    "InverseTimeDecay": {"initial_learning_rate": 0.1, "decay_rate": 0.5},
    "PiecewiseConstantDecay": {"boundaries": [2, 5], "values": [0.1, 0.02, 0.001]},
    "PolynomialDecay": {"initial_learning_rate": 0.1},
}
RECIPES: list[dict[str, Any]] = [
    *({"optimizer": {"class_name": name, "config": STATEFUL}} for name in OPTIMIZERS.keys),
    *({"learning_rate": {"class_name": name, "config": CONFIGS[name]}} for name in SCHEDULES.keys),
    {"optimizer": {"class_name": "RMSprop", "config": {"centered": True, "momentum": 0.5}}},
    {"optimizer": {"class_name": "SGD", "config": {"momentum": 0.9, "nesterov": True, "clipnorm": 0.1}}},
    {"loss": {"class_name": "CategoricalFocalCrossentropy", "config": {"gamma": 1.5, "label_smoothing": 0.1}}},
]


def tiny(recipe: dict[str, Any], dtype: str = "float32", **changes: Any) -> Learner:
    # With the default learning rate, because a recipe contradicts another one.
    changes |= {"learning_rate": TrainConfig.learning_rate}
    return make_learner(dtype, model=TINY, recipe=json.dumps(recipe), **changes)


def train(learner: Learner, examples: Examples, sampler: Sampler, num_steps: int) -> None:
    learner.train(learner.batches(examples, sampler, NUM_STEPS), num_steps)


def copy(learner: Learner) -> list[Any]:
    return variables.values(learner.variables())


@pytest.mark.parametrize(
    "recipe",
    # One is enough to see that nothing is broken.
    [RECIPES[0], *(pytest.param(recipe, marks=pytest.mark.slow) for recipe in RECIPES[1:])],
    ids=lambda each: next(iter(each.values()))["class_name"],
)
def test_a_fresh_learner_resumes_with_equal_bits(training: Examples, sampler: Sampler, recipe: dict[str, Any]) -> None:
    whole, resumed = tiny(recipe), tiny(recipe)
    train(whole, training, sampler, 4)
    saved = copy(whole)
    variables.assign(resumed.variables(), saved)
    resumed.refresh()
    resumed.step = whole.step
    for learner in (whole, resumed):
        train(learner, training, sampler, 4)
    assert all(np.array_equal(one, other) for one, other in zip(copy(whole), copy(resumed), strict=True))
    assert any(not np.array_equal(one, other) for one, other in zip(saved, copy(whole), strict=True))


@pytest.mark.slow
def test_a_checkpoint_has_all_state_of_nadam_with_loss_scaling_too(training: Examples, sampler: Sampler) -> None:
    recipe = {"optimizer": {"class_name": "Nadam"}}
    assert len(tiny(recipe, "float16").variables()) == len(tiny(recipe).variables())
    whole, resumed = tiny(recipe, "float16"), tiny(recipe, "float16")
    train(whole, training, sampler, 3)
    variables.assign(resumed.variables(), copy(whole))
    resumed.set_loss_scaling(whole.loss_scaling())
    resumed.step = whole.step
    for learner in (whole, resumed):
        train(learner, training, sampler, 1)
    assert all(np.array_equal(one, other) for one, other in zip(copy(whole), copy(resumed), strict=True))


def test_the_averages_are_what_is_validated_and_what_a_checkpoint_has_as_the_model(
    training: Examples, sampler: Sampler
) -> None:
    recipe = {
        "optimizer": {"class_name": "SGD", "config": {"use_ema": True, "ema_momentum": 0.8}},
        "learning_rate": 0.1,
    }
    learner = tiny(recipe)
    train(learner, training, sampler, 6)
    weights, state = variables.values(learner.model.variables), copy(learner)
    exported = tiny({})
    variables.assign(exported.model.variables, state[: len(weights)])
    expected, found = exported.evaluate(training), learner.evaluate(training)
    assert expected is not None
    assert found is not None
    assert found.loss == pytest.approx(expected.loss, rel=1e-6)
    assert found.accuracy == expected.accuracy
    # The training itself continues with the weights.
    assert all(np.array_equal(a, b) for a, b in zip(weights, variables.values(learner.model.variables), strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(weights, state, strict=False))


def test_an_average_is_that_of_keras(training: Examples, sampler: Sampler) -> None:
    recipe = {"optimizer": {"class_name": "SGD", "config": {"use_ema": True, "ema_momentum": 0.8}}}
    learner, average = tiny(recipe), np.zeros(0)
    for step in range(4):
        train(learner, training, sampler, 1)
        weight = learner.model.trainable_variables[0].numpy()
        average = weight if not step else 0.8 * average + 0.2 * weight
    own = learner.variables()[[each.name for each in learner.model.variables].index("kernel")].numpy()
    np.testing.assert_allclose(own, average, rtol=1e-5, atol=1e-7)


def test_accumulated_steps_are_one_update_with_their_mean(training: Examples, sampler: Sampler) -> None:
    sgd = {"class_name": "SGD", "config": {}}
    rate = {"class_name": "PiecewiseConstantDecay", "config": {"boundaries": [100], "values": [0.1, 0.1]}}
    accumulating = {"gradient_accumulation_steps": 3, "use_ema": True}
    three = tiny({"optimizer": {**sgd, "config": accumulating}, "learning_rate": rate}, augment="none")
    one = tiny({"optimizer": sgd, "learning_rate": rate}, augment="none", global_batch_size=96)
    large = dataclasses.replace(sampler, global_batch_size=96)
    before = variables.values(three.model.trainable_variables)
    train(three, training, sampler, 2)
    averages = keras_internals.moving_averages(three.optimizer)
    # The averages are those of weights that have not changed yet, not zero.
    for found in (three.model.trainable_variables, averages):
        assert all(np.array_equal(a, b) for a, b in zip(before, variables.values(found), strict=True))
    train(three, training, sampler, 1)
    train(one, training, large, 1)
    for own, expected in zip(three.model.trainable_variables, one.model.trainable_variables, strict=True):
        np.testing.assert_allclose(own.numpy(), expected.numpy(), rtol=1e-4, atol=1e-6)


def test_overflows_of_float16_with_accumulation_and_averages_change_nothing(
    training: Examples, sampler: Sampler
) -> None:
    learner = tiny({"optimizer": {"class_name": "AdamW", "config": STATEFUL}}, "float16")
    learner.set_loss_scaling({"scale": 2.0**120, "steps": 0.0})
    before = copy(learner)
    train(learner, training, sampler, 1)
    assert learner.loss_scaling()["scale"] == 2.0**119
    assert all(np.array_equal(one, other) for one, other in zip(before, copy(learner), strict=True))
    learner.set_loss_scaling({"scale": 2.0**10, "steps": 0.0})
    train(learner, training, sampler, 4)
    assert learner.loss_scaling() == {"scale": 2.0**10, "steps": 4.0}


@pytest.mark.parametrize(
    "chosen",
    [
        {"class_name": "CategoricalCrossentropy", "config": {"label_smoothing": 0.1}},
        {"class_name": "CategoricalFocalCrossentropy", "config": {"alpha": 0.5, "gamma": 3.0}},
    ],
)
def test_the_loss_of_a_step_is_that_of_keras_with_class_weights(
    training: Examples, sampler: Sampler, chosen: dict[str, Any]
) -> None:
    config = TrainConfig(
        model=TINY, recipe=json.dumps({"loss": chosen}), augment="none", global_batch_size=32, learning_rate=0.003
    )
    weights = [0.5 + label / 9 for label in range(10)]
    learner = Learner(
        config, tf.distribute.get_strategy(), image_size=16, num_classes=10, num_steps=14, class_weights=weights
    )
    batches = learner.batches(training, sampler, NUM_STEPS)
    images, labels, *_ = next(iter(batches))
    loss = getattr(keras.losses, chosen["class_name"])(**chosen["config"])
    expected = loss(tf.one_hot(labels, 10), learner.model(images), sample_weight=tf.gather(weights, labels))
    found = learner.train(learner.batches(training, sampler, NUM_STEPS), 1).losses
    np.testing.assert_allclose(found, [float(expected)], rtol=1e-5)


def test_balanced_sampling_reads_single_examples_however_large_the_data_is() -> None:
    data: Any = SimpleNamespace(num_examples={"train": 10**7}, image_size=224)
    sizes = []
    for recipe in ("", '{"sampling": "balanced"}'):
        training: Any = SimpleNamespace(config=TrainConfig(recipe=recipe), data=data)
        sizes.append(Training.sampler(training).block_size)
    assert sizes[0] > 0
    assert sizes[1] == 0


def test_a_schedule_ends_at_the_last_step_and_goes_by_the_steps_done() -> None:
    recipe = {"learning_rate": {"class_name": "CosineDecay", "config": CONFIGS["CosineDecay"]}}
    clock = tf.Variable(0, dtype=tf.int64)
    optimizer = optimizers.build(TrainConfig(recipe=json.dumps(recipe)), 23, clock)
    rates = []
    for step in (0, 3, 13, 23):
        clock.assign(step)
        rates.append(float(optimizer.learning_rate))
    assert rates == pytest.approx([0.0, 0.1, 0.05, 0.0], abs=1e-6)


def test_the_learning_rate_of_a_recipe_is_the_peak_of_the_flags_schedule() -> None:
    clock = tf.Variable(1, dtype=tf.int64)
    optimizer = optimizers.build(TrainConfig(recipe='{"learning_rate": 0.5}', warmup_fraction=0.2), 10, clock)
    assert float(optimizer.learning_rate) == 0.5


def test_adamw_has_the_weight_decay_of_keras() -> None:
    usual = keras.optimizers.AdamW()
    assert optimizers.build(TrainConfig(recipe='{"optimizer": {"class_name": "AdamW"}}'), 5).weight_decay == (
        usual.weight_decay
    )


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ({"optimizer": {"class_name": "SGD", "config": {"clipnorm": 1, "clipvalue": 1}}}, "Only one of `clipnorm`"),
        ({"optimizer": {"class_name": "Lion", "config": {"beta_1": 0}}}, "degenerates to SignSGD"),
        *(
            (
                {"learning_rate": {"class_name": "PiecewiseConstantDecay", "config": config}},
                message,
            )
            for config, message in (
                ({"boundaries": [1], "values": [1]}, "length of boundaries should be 1 less"),
                ({"boundaries": [], "values": [1]}, "PiecewiseConstantDecay.boundaries are []; expected ascending"),
                ({"boundaries": [5, 2], "values": [1, 2, 3]}, "boundaries are [5, 2]; expected ascending steps"),
                ({"boundaries": [2, 2], "values": [1, 2, 3]}, "boundaries are [2, 2]; expected ascending steps"),
            )
        ),
    ],
)
def test_what_only_keras_refuses_is_one_line(recipe: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        optimizers.build(TrainConfig(recipe=json.dumps(recipe)), 5)
    assert str(caught.value).startswith("recipe: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.soak
@pytest.mark.slow
def test_two_devices_train_as_one(repository: Path) -> None:
    """In a process of its own, because TensorFlow splits its CPU before the first operation."""
    command = [sys.executable, "-m", "tests.support.recipes_on_devices"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=repository, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == [*OPTIMIZERS.keys, "losses", "phases", "refused"]
