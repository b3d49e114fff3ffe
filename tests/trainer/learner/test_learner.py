"""The learner: many steps per graph call, one pure pass per replica, digests, precisions and evaluation."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import numpy.typing as npt
import pytest
import tensorflow as tf
from sklearn import metrics as sklearn_metrics

from exact_resume.checkpoints import checkpoints
from exact_resume.loop import Block
from tests.support.learners import NUM_STEPS, make_learner
from trainer.checkpoints import variables
from trainer.data.augmentation.basic import AUGMENTATIONS
from trainer.data.augmentation.layers import Augmentation
from trainer.data.batches import evaluation_batches
from trainer.data.examples import Examples
from trainer.data.sampler import Sampler
from trainer.learner.learner import Learner, Steps

MIXED = Augmentation([{"class_name": "MixUp", "config": {"alpha": 1.0}}], image_size=16, num_classes=10)


def state(learner: Learner) -> str:
    return checkpoints.digest(variables.values(learner.variables()))


def test_many_steps_in_one_call_equal_as_many_calls_of_one_step(training: Examples, sampler: Sampler) -> None:
    one, many = make_learner(), make_learner()
    batches = one.batches(training, sampler, NUM_STEPS)
    parts = [one.train(batches, 1) for _ in range(6)]
    together = many.train(many.batches(training, sampler, NUM_STEPS), 6)
    assert one.step == many.step == 6
    assert [part.digests[0] for part in parts] == together.digests.tolist()
    np.testing.assert_allclose([part.losses[0] for part in parts], together.losses, rtol=1e-4)


def test_a_step_equals_that_of_a_gradient_tape_and_the_optimizer(training: Examples, sampler: Sampler) -> None:
    """The pure pass against the usual one: same loss, same weights, same moving averages."""
    learner, usual = make_learner(augment="none"), make_learner(augment="none")
    for model in (learner.model, usual.model):
        model.get_layer("dropout").rate = 0.0
    images, labels, *_ = next(iter(usual.batches(training, sampler, NUM_STEPS)))
    with tf.GradientTape() as tape:
        probabilities = usual.model(images, training=True)
        loss = tf.reduce_mean(keras.losses.sparse_categorical_crossentropy(labels, probabilities))
    trained = usual.model.trainable_variables
    usual.optimizer.apply_gradients(zip(tape.gradient(loss, [v.value for v in trained]), trained, strict=True))
    steps = learner.train(learner.batches(training, sampler, NUM_STEPS), 1)
    np.testing.assert_allclose(steps.losses, [float(loss)], rtol=1e-5)
    for own, expected in zip(learner.model.variables, usual.model.variables, strict=True):
        # The usual pass has moved the seed on; here a seed is a function of the step.
        if "seed" not in own.name:
            np.testing.assert_allclose(own.numpy(), expected.numpy(), rtol=1e-4, atol=1e-6)


def test_dropout_differs_from_step_to_step_and_follows_from_the_step_alone(
    training: Examples, sampler: Sampler
) -> None:
    def losses(start: int) -> npt.NDArray[np.float32]:
        learner = make_learner(augment="none", learning_rate=1e-12)
        learner.step = start
        return learner.train(learner.batches(training, sampler, NUM_STEPS), 1).losses

    assert losses(3) == losses(3)
    learner = make_learner()
    seeds: list[list[int]] = []
    for step in (3, 4):
        seeds += [value.numpy().tolist() for value in _in_replica(learner, step) if value.shape == (2,)]
    assert seeds[0] != seeds[1]
    assert seeds[0][0] == seeds[1][0]


def _in_replica(learner: Learner, step: int) -> Any:
    return learner.distribution_strategy.run(lambda: learner.replica_step.others_at(tf.constant(step, tf.int64)))


def test_the_digest_depends_on_pixels_examples_and_their_positions(training: Examples, sampler: Sampler) -> None:
    learner = make_learner()
    steps = learner.train(learner.batches(training, sampler, NUM_STEPS), 4)
    for step in range(4):
        indices = sampler.indices(tf.constant(step))
        images, _ = training.gather(indices)
        images = AUGMENTATIONS["flip-and-shift"](images, sampler.random_numbers(tf.constant(step))).numpy()
        assert int(steps.digests[step]) == reference_digest(images, indices.numpy())
    other = images.copy()
    other[3, 2, 1, 0] ^= 1
    swapped = np.concatenate([images[1:2], images[:1], images[2:]])
    found = {reference_digest(one, indices.numpy()) for one in (images, other, swapped)}
    found.add(reference_digest(images, indices.numpy() + 1))
    assert len(found) == 4


def test_mixing_reaches_neither_evaluation_nor_its_score(training: Examples) -> None:
    learner = make_learner()
    expected = learner.evaluate(training)
    learner.augmentation = MIXED
    assert learner.evaluate(training) == expected
    images, labels, _ = next(iter(evaluation_batches(training, 32)))
    for found, stored in zip((images, labels), training.gather(tf.range(32)), strict=True):
        assert np.array_equal(found, stored)


def test_a_resumed_run_trains_on_the_same_mixed_pixels_and_soft_labels(training: Examples, sampler: Sampler) -> None:
    def train(augmentation: Augmentation, start: int, stop: int) -> Steps:
        learner = make_learner(augment="none", learning_rate=1e-12)
        learner.augmentation, learner.step = augmentation, start
        return learner.train(learner.batches(training, sampler, stop), stop - start)

    whole, resumed = train(MIXED, 0, 5), train(MIXED, 3, 5)
    assert resumed.digests.tolist() == whole.digests[3:].tolist()
    np.testing.assert_allclose(resumed.losses, whole.losses[3:], rtol=1e-4)
    assert not {*whole.digests.tolist()} & {*train(Augmentation(), 0, 5).digests.tolist()}


@pytest.mark.soak
@pytest.mark.slow
def test_one_two_and_one_devices_train_on_the_same_mixed_pixels(repository: Path) -> None:
    def digests(num_devices: int) -> str:
        command = [sys.executable, "-m", "tests.support.mixed_digests", str(num_devices)]
        return subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True).stdout

    first, *others = map(digests, (1, 2, 1, 3))
    assert len(set(first.split())) == 4
    assert others == [first] * 3


def reference_digest(images: npt.NDArray[np.uint8], indices: npt.NDArray[np.int64]) -> int:
    """Compute the same sum in Python's integers, number by number."""
    size = images[0].size
    num_words = -(-size // 8)
    factors = np.random.Generator(np.random.Philox(20260822)).integers(-(2**63), 2**63, num_words, dtype=np.int64) | 1
    total = 0
    for position, (image, index) in enumerate(zip(images, indices, strict=True)):
        data = image.tobytes().ljust(num_words * 8, b"\0")
        words = [int.from_bytes(data[start : start + 8], "little") for start in range(0, len(data), 8)]
        pixels = sum(word * int(factor) for word, factor in zip(words, factors, strict=True))
        mixed = (pixels % 2**64) ^ ((int(index) + 1) * -7046029254386353131 % 2**64)
        total += mixed * (2 * position + 1)
    return total % 2**64


def test_frozen_weights_are_neither_exchanged_nor_written(training: Examples, sampler: Sampler) -> None:
    learner = make_learner()
    learner.model.get_layer("conv1").trainable = False
    learner.optimizer.build(learner.model.trainable_variables)
    batch = next(iter(learner.batches(training, sampler, NUM_STEPS)))
    values = [variable.value for variable in learner.model.trainable_variables]
    others = _in_replica(learner, 0)
    _, changed, _ = learner.distribution_strategy.run(
        lambda: learner.replica_step.gradients(values, others, batch, tf.constant(1.0))
    )
    names = [learner.model.non_trainable_variables[int(position)].name for position in changed]
    assert sorted(set(names)) == ["moving_mean", "moving_variance"]


@pytest.mark.slow
def test_xla_computes_the_same(training: Examples, sampler: Sampler) -> None:
    plain, compiled = make_learner(), make_learner()
    for learner in (plain, compiled):
        # XLA generates different random numbers from the same seed.
        learner.model.get_layer("dropout").rate = 0.0
    compiled.use_xla(True)
    expected = plain.train(plain.batches(training, sampler, NUM_STEPS), 3)
    found = compiled.train(compiled.batches(training, sampler, NUM_STEPS), 3)
    assert found.digests.tolist() == expected.digests.tolist()
    np.testing.assert_allclose(found.losses[:1], expected.losses[:1], rtol=1e-4)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_lower_precision_keeps_variables_and_probabilities_in_float32(
    training: Examples, sampler: Sampler, dtype: str
) -> None:
    learner = make_learner(dtype)
    assert {v.dtype for v in learner.model.trainable_variables} == {"float32"}
    assert learner.model.get_layer("conv2").compute_dtype == dtype
    assert learner.model(training.images[:2]).dtype == tf.float32
    steps = learner.train(learner.batches(training, sampler, NUM_STEPS), 10)
    assert steps.losses[-3:].mean() < steps.losses[0]
    assert keras.config.dtype_policy().name == "float32"
    # A checkpoint of it is one of float32, and the other way round.
    assert len(make_learner().variables()) == len(learner.variables())


def test_steps_that_overflow_float16_change_nothing_but_the_scale(training: Examples, sampler: Sampler) -> None:
    learner = make_learner("float16")
    assert make_learner().loss_scaling() == {}
    learner.set_loss_scaling({"scale": 2.0**100, "steps": 7.0})
    before = variables.values(learner.model.trainable_variables)
    learner.train(learner.batches(training, sampler, NUM_STEPS), 2)
    assert learner.loss_scaling() == {"scale": 2.0**98, "steps": 0.0}
    after = variables.values(learner.model.trainable_variables)
    assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))
    learner.set_loss_scaling({"scale": 2.0**10, "steps": 0.0})
    learner.train(learner.batches(training, sampler, NUM_STEPS), 2)
    assert learner.loss_scaling() == {"scale": 2.0**10, "steps": 2.0}
    # The schedule goes by the steps done, not by those the optimizer counts.
    assert (learner.step, int(learner.optimizer.iterations)) == (4, 2)


def one_by_one(num_rounds: int) -> list[Block]:
    """Do each round in a call of its own."""
    one_by_one.asked = num_rounds  # type: ignore[attr-defined]
    return [Block(first_step=number, num_steps=1) for number in range(num_rounds)]


def test_an_evaluation_does_not_depend_on_the_rounds_per_call(
    training: Examples, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainer.learner.learner.EVALUATION_BATCH_SIZE", 32)
    learner = make_learner()
    whole = learner.evaluate(training)
    assert learner.evaluate(training, one_by_one) == whole
    assert one_by_one.asked == -(-training.num_examples // 32)


def test_an_evaluation_after_one_that_was_interrupted_scores_the_whole_split(
    training: Examples, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainer.learner.learner.EVALUATION_BATCH_SIZE", 32)
    learner = make_learner()
    expected = learner.evaluate(training, one_by_one)

    def interrupted(num_rounds: int) -> Iterator[Block]:
        yield one_by_one(num_rounds)[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learner.evaluate(training, interrupted)
    assert [learner.evaluate(training, one_by_one) for _ in range(2)] == [expected] * 2


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("balanced-accuracy", sklearn_metrics.balanced_accuracy_score),
        pytest.param(
            "macro-f1",
            lambda labels, answers: sklearn_metrics.f1_score(labels, answers, average="macro"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_chosen_metric_is_that_of_all_answers(
    training: Examples, sampler: Sampler, monkeypatch: pytest.MonkeyPatch, metric: str, expected: Any
) -> None:
    """The last round is padded; padding is no example."""
    monkeypatch.setattr("trainer.learner.learner.EVALUATION_BATCH_SIZE", 32)
    assert training.num_examples % 32
    learner, plain = make_learner(metric=metric), make_learner()
    for each in (learner, plain):
        each.train(each.batches(training, sampler, NUM_STEPS), 6)
    found, usual = learner.evaluate(training, one_by_one), plain.evaluate(training, one_by_one)
    assert found is not None
    assert usual is not None
    images, labels = (np.asarray(part) for part in (training.images, training.labels))
    answers = np.asarray(learner.model(images, training=False)).argmax(axis=1)
    assert found.score == pytest.approx(expected(labels, answers), abs=1e-12)
    assert found.score != found.accuracy
    assert found.fields() == {"loss": usual.loss, "accuracy": usual.accuracy, "metric": metric, "score": found.score}
    assert usual.fields() == {"loss": usual.loss, "accuracy": usual.accuracy}
    assert learner.evaluate(training) == found


def test_regularisation_counts_once(training: Examples, sampler: Sampler) -> None:
    learner = make_learner(augment="none")
    plain = learner.train(learner.batches(training, sampler, NUM_STEPS), 1).losses[0]
    penalised = make_learner(augment="none")
    kernel = penalised.model.get_layer("logits").kernel
    kernel.regularizer = keras.regularizers.L2(0.5)
    expected = plain + 0.5 * float(tf.reduce_sum(kernel.value**2))
    assert penalised.train(penalised.batches(training, sampler, NUM_STEPS), 1).losses[0] == pytest.approx(
        expected, rel=1e-4
    )
