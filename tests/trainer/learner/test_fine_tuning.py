"""Two phases in one run: the head alone, then the base, too, with a learning rate of its own."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from localvertex._base.userinput.errors import UserError
from tests.support import tiny_base
from tests.support.learners import NUM_STEPS, make_learner
from trainer.checkpoints import variables
from trainer.config import TrainConfig
from trainer.data.examples import Examples
from trainer.data.sampler import Sampler
from trainer.learner import optimizers
from trainer.learner.learner import Learner
from trainer.models.recipes import OPTIMIZERS

pytestmark = [
    pytest.mark.slow,
    # h5py converts the variables of Keras 3.15 in a way that NumPy 2 deprecates.
    pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept a copy keyword:DeprecationWarning"),
]
BOUNDARY = 4
"""Of NUM_STEPS."""
START = 0.3
STATEFUL = {"use_ema": True, "global_clipnorm": 1.0, "weight_decay": 0.01}
Arrays = list[Any]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A file with weights of a small base."""
    tiny_base.install()
    yield tiny_base.save_weights(tmp_path_factory.mktemp("weights"), 16)
    tiny_base.uninstall()


def make(weights: str, dtype: str = "float32", *, optimizer: Any = None, trainable: str = "", **chosen: Any) -> Learner:
    """Return a learner with two phases, or with one that trains what `trainable` says."""
    recipe = {"learning_rate": 0.01} | ({"optimizer": optimizer} if optimizer else {})
    if not trainable:
        recipe["fine_tuning"] = {"start": START} | chosen
    return make_learner(
        dtype,
        model=tiny_base.NAME,
        weights=weights,
        recipe=json.dumps(recipe),
        trainable=trainable or "default",
        learning_rate=TrainConfig.learning_rate,
    )


def train(learner: Learner, examples: Examples, sampler: Sampler, *calls: int) -> Any:
    """Train a number of steps in each call, as the loop does; return the losses."""
    batches, losses = learner.batches(examples, sampler, NUM_STEPS), list[float]()
    for num_steps in calls:
        learner.fine_tune(learner.step)
        losses += learner.train(batches, num_steps).losses.tolist()
    return losses


def of_base(learner: Learner) -> Arrays:
    return [np.array(value) for value in learner.model.get_layer("tiny_base").get_weights()]


def of_head(learner: Learner) -> Arrays:
    return [np.array(value) for value in learner.model.get_layer("logits").get_weights()]


def equal(one: Arrays, other: Arrays) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("name", ["AdamW", "SGD"])
def test_the_first_phase_is_a_run_with_a_frozen_base_bit_by_bit(
    weights: str, training: Examples, sampler: Sampler, name: str
) -> None:
    optimizer = {"class_name": name, "config": STATEFUL}
    two, frozen = make(weights, optimizer=optimizer), make(weights, optimizer=optimizer, trainable="head")
    before = of_base(two)
    losses = [train(learner, training, sampler, 1, BOUNDARY - 1) for learner in (two, frozen)]
    assert losses[0] == losses[1]
    assert equal(variables.values(two.variables()), variables.values(frozen.variables()))
    assert equal(before, of_base(two))
    assert two.optimizer.learning_rate == frozen.optimizer.learning_rate
    # No momenta for a frozen base.
    assert len(two.optimizer.variables) == len(frozen.optimizer.variables)


def test_the_second_phase_begins_with_a_whole_group_of_accumulated_gradients(weights: str) -> None:
    accumulating = {"class_name": "SGD", "config": {"gradient_accumulation_steps": 3}}
    assert make(weights, optimizer=accumulating).fine_tuning_step == 3
    assert make(weights).fine_tuning_step == BOUNDARY


def test_the_second_phase_trains_the_base_and_never_its_statistics(
    weights: str, training: Examples, sampler: Sampler
) -> None:
    learner = make(weights, optimizer={"class_name": "AdamW", "config": STATEFUL})
    train(learner, training, sampler, BOUNDARY)
    before = of_base(learner)
    assert learner.fine_tune(BOUNDARY)
    assert not learner.fine_tune(BOUNDARY)
    assert equal(before, of_base(learner))
    train(learner, training, sampler, 3)
    base = learner.model.get_layer("tiny_base")
    changed = {
        variable.path.rpartition("/")[0].rpartition("/")[2]
        for variable, one, other in zip(base.weights, before, of_base(learner), strict=True)
        if not np.array_equal(one, other)
    }
    assert changed == {"conv1", "conv2"}


def test_only_the_last_layers_are_trained(weights: str, training: Examples, sampler: Sampler) -> None:
    learner = make(weights, layers=3)
    before = of_base(learner)
    train(learner, training, sampler, BOUNDARY, 3)
    base = learner.model.get_layer("tiny_base")
    assert [each.path for each in base.trainable_variables] == ["conv2/kernel", "conv2/bias"]
    assert sum(not np.array_equal(a, b) for a, b in zip(before, of_base(learner), strict=True)) == 2


def test_more_layers_than_there_are_and_layers_without_weights_are_refused(weights: str) -> None:
    assert len(make(weights, layers=tiny_base.NUM_LAYERS).model.layers[2].layers) == tiny_base.NUM_LAYERS
    # The last layer has no weights.
    for number in (1, tiny_base.NUM_LAYERS + 1):
        with pytest.raises(UserError, match=f"fine_tuning.layers is {number}, but the base has 8 layers, of which the"):
            make(weights, layers=number).fine_tune(BOUNDARY)


@pytest.mark.parametrize("name", list(OPTIMIZERS.keys))
def test_the_base_has_a_multiple_of_the_learning_rate_of_the_head(
    weights: str, training: Examples, sampler: Sampler, name: str
) -> None:
    """Each rule is linear in the learning rate, and from equal states the gradients are equal."""
    changes = []
    for factor in (1.0, 0.25):
        optimizer = {"class_name": name, "config": {"global_clipnorm": 1.0, "weight_decay": 0.1}}
        learner = make(weights, optimizer=optimizer, learning_rate_multiplier=factor)
        train(learner, training, sampler, BOUNDARY)
        before = of_base(learner), of_head(learner)
        train(learner, training, sampler, 1)
        after = of_base(learner), of_head(learner)
        changes.append([[b - a for a, b in zip(*pair, strict=True)] for pair in zip(before, after, strict=True)])
    (base, head), (slow_base, slow_head) = changes
    assert equal(head, slow_head)
    assert any(value.any() for value in base)
    for fast, slow in zip(base, slow_base, strict=True):
        np.testing.assert_allclose(slow, 0.25 * fast, rtol=1e-3, atol=1e-7)


def test_the_first_step_with_the_base_is_that_of_two_optimizers_of_keras(
    weights: str, training: Examples, sampler: Sampler
) -> None:
    config = {"weight_decay": 0.1, "epsilon": 1e-3}
    learner = make(weights, optimizer={"class_name": "AdamW", "config": config}, learning_rate_multiplier=0.1)
    train(learner, training, sampler, BOUNDARY)
    learner.fine_tune(BOUNDARY)
    rate = float(learner.optimizer.learning_rate)
    head = learner.model.get_layer("logits").trainable_variables
    base = learner.model.get_layer("tiny_base").trainable_variables
    images, labels, numbers, indices, positions = next(iter(learner.batches(training, sampler, NUM_STEPS)))
    gradients, *_ = learner.replica_step.gradients(
        [variable.value for variable in learner.model.trainable_variables],
        learner.replica_step.others_at(learner._step),
        (images, labels, numbers, indices, positions),
        tf.constant(1.0),
    )
    of_variable = {id(v): g for v, g in zip(learner.model.trainable_variables, gradients, strict=True)}
    expected = []
    for group, optimizer in (
        (head, keras.optimizers.AdamW(rate, **config)),
        (base, keras.optimizers.Adam(0.1 * rate, epsilon=1e-3)),
    ):
        copies = [keras.Variable(variable.numpy()) for variable in group]
        optimizer.apply([of_variable[id(variable)] for variable in group], copies)
        expected += copies
    train(learner, training, sampler, 1)
    for variable, copy in zip([*head, *base], expected, strict=True):
        np.testing.assert_allclose(variable.numpy(), copy.numpy(), rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("steps", [BOUNDARY, BOUNDARY - 1, BOUNDARY + 1])
@pytest.mark.parametrize(
    ("name", "dtype", "more"),
    [
        ("AdamW", "float32", {}),
        ("Nadam", "float16", {}),
        ("SGD", "float32", {"momentum": 0.9, "gradient_accumulation_steps": 2}),
    ],
)
def test_a_fresh_learner_resumes_before_at_and_after_the_boundary_with_equal_bits(
    weights: str, training: Examples, sampler: Sampler, steps: int, name: str, dtype: str, more: dict[str, Any]
) -> None:
    optimizer = {"class_name": name, "config": STATEFUL | more}
    whole, resumed = (make(weights, dtype, optimizer=optimizer, learning_rate_multiplier=0.1) for _ in range(2))
    train(whole, training, sampler, min(steps, BOUNDARY), *([steps - BOUNDARY] if steps > BOUNDARY else []))
    saved, scaling = variables.values(whole.variables()), whole.loss_scaling()
    resumed.step = steps
    variables.assign(resumed.variables(), saved)
    resumed.set_loss_scaling(scaling)
    rest = [BOUNDARY - steps] if steps < BOUNDARY else []
    losses = [train(learner, training, sampler, *rest, 4) for learner in (whole, resumed)]
    assert losses[0] == losses[1]
    assert equal(variables.values(whole.variables()), variables.values(resumed.variables()))
    assert whole.loss_scaling() == resumed.loss_scaling()
    assert whole.evaluate(training) == resumed.evaluate(training)


@pytest.mark.parametrize("steps", [BOUNDARY, BOUNDARY + 2])
def test_the_averages_of_the_phase_are_what_is_validated_and_exported(
    weights: str, training: Examples, sampler: Sampler, steps: int
) -> None:
    learner = make(weights, optimizer={"class_name": "AdamW", "config": STATEFUL})
    train(learner, training, sampler, BOUNDARY, *([steps - BOUNDARY] if steps > BOUNDARY else []))
    own, found = variables.values(learner.model.variables), learner.evaluate(training)
    exported = make(weights, trainable="all")
    variables.assign(exported.model.variables, variables.values(learner.variables())[: len(own)])
    expected = exported.evaluate(training)
    assert expected is not None
    assert found is not None
    assert found.loss == pytest.approx(expected.loss, rel=1e-5)
    assert not equal(own, variables.values(exported.model.variables))


def test_start_zero_trains_the_base_from_the_first_step(weights: str, training: Examples, sampler: Sampler) -> None:
    learner = make(weights, start=0)
    assert learner.fine_tuning_step == 0
    before = of_base(learner)
    train(learner, training, sampler, 1)
    assert not equal(before, of_base(learner))


def test_the_learning_rate_follows_one_schedule_over_both_phases(
    weights: str, training: Examples, sampler: Sampler
) -> None:
    learner, rates = make(weights), []
    expected = make(weights, trainable="head")
    for step in range(0, NUM_STEPS, 2):
        learner.step = expected.step = step
        rates.append((float(learner.optimizer.learning_rate), float(expected.optimizer.learning_rate)))
    assert all(one == other for one, other in rates)


def test_without_the_key_there_is_one_phase() -> None:
    learner = make_learner()
    assert learner.fine_tuning_step == 0
    assert not learner.fine_tune(NUM_STEPS)
    assert optimizers.build(TrainConfig(), 3).update_step.__func__ is type(learner.optimizer).update_step


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model": "convnet"}, "the recipe's fine_tuning do not work with model 'convnet': it has no pretrained base"),
        ({"model": "a.b:c"}, "fine_tuning do not work with model 'a.b:c': freeze layers in the function itself; use"),
        ({"weights": "none"}, "the recipe's fine_tuning would freeze random weights with weights='none'; set weights"),
        ({"trainable": "all"}, "trainable='all' and the recipe's fine_tuning exclude each other; give one"),
        ({"trainable": "head"}, "trainable='head' and the recipe's fine_tuning exclude each other; give one"),
    ],
)
@pytest.mark.parametrize("recipe", ["fine-tuning", '{"fine_tuning": {}}'])
def test_what_has_no_pretrained_base_is_refused(fields: dict[str, Any], message: str, recipe: str) -> None:
    with pytest.raises(UserError) as caught:
        TrainConfig(**{"model": "resnet50", "recipe": recipe} | fields)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_of_weights_of_this_run_is_not_needed_to_check_its_configuration(tmp_path: Path) -> None:
    config = TrainConfig(model="resnet50", recipe="fine-tuning", weights=str(tmp_path / "base.weights.h5"))
    assert json.loads(config.recipe)["fine_tuning"] == {"start": 0.3, "learning_rate_multiplier": 0.1}
