import numpy as np
import pytest
import tensorflow as tf

from trainer.data.augmentation import AUGMENTATIONS
from trainer.data.batches import Shard, evaluation_batches, training_batches
from trainer.data.examples import ExamplesInMemory
from trainer.data.sampler import Sampler
from userinput.errors import UserError


def examples(count=37, size=8):
    pixels = np.random.default_rng(3).integers(0, 256, (count, size, size, 3), dtype=np.uint8)
    return ExamplesInMemory(images=tf.constant(pixels), labels=tf.range(count), image_size=size)


def reference_indices(order, step):
    """The order written out number by number, the slow way."""
    epoch, place = divmod(step, order.num_examples // order.global_batch_size)
    return [
        int(
            tf.random.experimental.index_shuffle(
                np.int64(place * order.global_batch_size + offset),
                seed=np.array([order.seed, epoch], np.int64),
                max_index=order.num_examples - 1,
            )
        )
        for offset in range(order.global_batch_size)
    ]


def collect(order, start, stop, **options):
    return [
        tuple(np.asarray(part) for part in batch)
        for batch in training_batches(examples(), order, start_step=start, stop_step=stop, shard=Shard(**options))
    ]


ORDER = Sampler(num_examples=37, global_batch_size=8, seed=11)


def test_order_agrees_with_the_reference():
    for step in (0, 3, 4, 9, 1000):
        assert np.asarray(ORDER.indices(tf.constant(step))).tolist() == reference_indices(ORDER, step)


def test_an_epoch_visits_no_example_twice_and_epochs_differ():
    epochs = [
        np.concatenate([np.asarray(ORDER.indices(tf.constant(step))) for step in range(first, first + 4)])
        for first in (0, 4, 8)
    ]
    assert all(len(set(epoch)) == 32 for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3


def test_batches_from_any_step_equal_those_of_an_uninterrupted_run():
    whole = collect(ORDER, 0, 12)
    resumed = collect(ORDER, 7, 12)
    assert len(resumed) == 5
    for one, other in zip(whole[7:], resumed, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(("num_pipelines", "replicas"), [(2, 1), (4, 1), (3, 1), (1, 2), (2, 2), (2, 4), (1, 5)])
def test_several_replicas_together_give_the_same_global_batches(num_pipelines, replicas):
    shares = [
        {"pipeline": number, "num_pipelines": num_pipelines, "replicas_per_pipeline": replicas}
        for number in range(num_pipelines)
    ]
    parts = [collect(ORDER, 2, 6, **share) for share in shares]
    for step, batch in enumerate(collect(ORDER, 2, 6)):
        for part in range(5):
            # A pipeline's elements of a step follow each other, one a replica.
            mine = [elements[step * replicas : (step + 1) * replicas] for elements in parts]
            joined = np.concatenate([element[part] for elements in mine for element in elements])
            assert np.array_equal(joined, batch[part])


def test_batches_hold_the_images_of_their_indices():
    data = examples()
    for step, (images, labels, _, told, places) in enumerate(collect(ORDER, 0, 3)):
        indices = np.asarray(ORDER.indices(tf.constant(step)))
        assert np.array_equal(labels, indices)
        assert np.array_equal(told, indices)
        assert places.tolist() == list(range(8))
        assert np.array_equal(images, np.asarray(data.images)[indices])


def test_a_batch_larger_than_the_split_is_refused():
    with pytest.raises(UserError, match=r"global_batch_size=38 is more than the 37 images .* give at most 37"):
        Sampler(num_examples=37, global_batch_size=38, seed=0)


@pytest.mark.parametrize(
    ("num_pipelines", "replicas", "rounds"), [(1, 1, 5), (2, 1, 3), (1, 3, 2), (2, 2, 2), (7, 1, 1)]
)
def test_evaluation_sees_each_example_once(num_pipelines, replicas, rounds):
    seen = []
    for number in range(num_pipelines):
        share = Shard(pipeline=number, num_pipelines=num_pipelines, replicas_per_pipeline=replicas)
        batches, num_rounds = evaluation_batches(examples(), 8, share)
        assert num_rounds == rounds
        elements = list(batches)
        assert len(elements) == rounds * replicas
        for _, labels, weights in elements:
            seen += [(int(label), float(weight)) for label, weight in zip(labels, weights, strict=True)]
    assert sorted(label for label, weight in seen if weight) == list(range(37))
    assert {weight for _, weight in seen} == {0.0, 1.0}


@pytest.mark.parametrize("name", ["shift", "flip-and-shift"])
def test_random_changes_follow_from_the_draws_alone(name):
    images = examples().images[:16]
    draws = ORDER.random_numbers(tf.constant(5))
    draws = tf.concat([draws, ORDER.random_numbers(tf.constant(6))], axis=0)
    changed = AUGMENTATIONS[name](images, draws)
    assert np.array_equal(changed, AUGMENTATIONS[name](images, draws))
    assert not np.array_equal(changed, images)
    halves = [AUGMENTATIONS[name](images[a:b], draws[a:b]) for a, b in ((0, 8), (8, 16))]
    assert np.array_equal(changed, np.concatenate(halves))


def test_shift_moves_by_whole_pixels_and_repeats_the_border():
    image = np.arange(8 * 8, dtype=np.uint8).reshape(1, 8, 8, 1).repeat(3, axis=3)
    lowest = AUGMENTATIONS["shift"](tf.constant(image), tf.constant([[0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0]]))
    expected = np.concatenate([image[:, :1], image[:, :-1]], axis=1)
    assert np.array_equal(lowest, expected)
    assert np.array_equal(AUGMENTATIONS["none"](tf.constant(image), tf.constant([[0.0, 0.0, 0.0]])), image)


def test_flip_mirrors_about_half_of_the_images():
    images = tf.constant(np.tile(np.arange(16, dtype=np.uint8)[None, None, :, None], (400, 16, 1, 3)))
    draws = tf.random.stateless_uniform([400, 3], seed=[1, 2])
    changed = np.asarray(AUGMENTATIONS["flip-and-shift"](images, draws)).astype(int)
    mirrored = (changed[:, 0, 0, 0] > changed[:, 0, -1, 0]).sum()
    assert 150 < mirrored < 250
