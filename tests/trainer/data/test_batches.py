"""The global batches: the same from any step on and for any number of workers."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from trainer.data.augmentation.layers import Augmentation
from trainer.data.batches import Shard, evaluation_batches, evaluation_rounds, training_batches
from trainer.data.examples import ExamplesInMemory
from trainer.data.sampler import Sampler
from trainer.learner import batch_digest

WHOLE = Shard()
SAMPLER = Sampler(num_examples=37, global_batch_size=8, seed=11)


def examples() -> ExamplesInMemory:
    """37 images of 8x8 pixels, each labelled with its own index."""
    pixels = np.random.default_rng(3).integers(0, 256, (37, 8, 8, 3), dtype=np.uint8)
    return ExamplesInMemory(images=tf.constant(pixels), labels=tf.range(37), image_size=8)


def collect(start: int, stop: int, shard: Shard = WHOLE) -> list[tuple[Any, ...]]:
    """Images, labels, random numbers, indices and positions of each batch."""
    return [
        tuple(np.asarray(part) for part in batch)
        for batch in training_batches(examples(), SAMPLER, start_step=start, stop_step=stop, shard=shard)
    ]


def test_batches_from_any_step_equal_those_of_an_uninterrupted_run() -> None:
    whole = collect(0, 12)
    resumed = collect(7, 12)
    assert len(resumed) == 5
    for one, other in zip(whole[7:], resumed, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(("num_pipelines", "replicas"), [(2, 1), (4, 1), (3, 1), (1, 2), (2, 2), (2, 4), (1, 5)])
def test_several_replicas_together_give_the_same_global_batches(num_pipelines: int, replicas: int) -> None:
    shards = [
        Shard(pipeline=number, num_pipelines=num_pipelines, replicas_per_pipeline=replicas)
        for number in range(num_pipelines)
    ]
    parts = [collect(2, 6, shard) for shard in shards]
    for step, batch in enumerate(collect(2, 6)):
        for part in range(5):
            # A pipeline's elements of a step follow each other, one per replica.
            of_step = [elements[step * replicas : (step + 1) * replicas] for elements in parts]
            joined = np.concatenate([element[part] for elements in of_step for element in elements])
            assert np.array_equal(joined, batch[part])


def mixed(start: int, stop: int, size: int, num_pipelines: int = 1) -> list[tuple[Any, ...]]:
    """Batches with a change of each example, then MixUp or CutMix, joined over the pipelines."""
    spec = [
        {"class_name": "RandomRotation", "config": {"factor": 0.2}},
        [{"class_name": "MixUp", "config": {}}, {"class_name": "CutMix", "config": {}}],
    ]
    sampler = Sampler(num_examples=37, global_batch_size=size, seed=11)
    shards = [
        training_batches(
            examples(),
            sampler,
            Augmentation(spec, image_size=8, num_classes=37),
            start_step=start,
            stop_step=stop,
            shard=Shard(pipeline=number, num_pipelines=num_pipelines),
        )
        for number in range(num_pipelines)
    ]
    return [tuple(np.concatenate(parts) for parts in zip(*batch, strict=True)) for batch in zip(*shards, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize(("size", "others"), [(8, [(2, 1), (3, 0)]), (7, [(2, 0), (1, 2)])])
def test_mixed_pixels_and_labels_are_the_same_for_1_2_and_3_workers_and_after_a_resume(
    size: int, others: list[tuple[int, int]]
) -> None:
    """With 7 examples and with three workers, parts begin between two partners."""
    whole = mixed(0, 3, size)
    for num_pipelines, start in others:
        found = mixed(start, 3, size, num_pipelines)
        for one, other in zip(whole[start:], found, strict=True):
            assert [np.array_equal(a, b) for a, b in zip(one, other, strict=True)] == [True] * 5
    assert whole[0][1].shape == (size, 37)


def test_mixing_changes_the_digest() -> None:
    def digests(batches: list[tuple[Any, ...]]) -> list[int]:
        pieces = [batch_digest.pieces(batch[0], tf.constant(batch[3]), tf.constant(batch[4])) for batch in batches]
        return [int(digest) for digest in batch_digest.join(np.stack(pieces))]

    found = mixed(0, 2, 8)
    assert digests(found) == digests(mixed(0, 2, 8, 2))
    assert not {*digests(found)} & {*digests(collect(0, 2))}


def test_batches_contain_the_images_of_their_indices() -> None:
    data = examples()
    for step, (images, labels, random_numbers, indices, positions) in enumerate(collect(0, 3)):
        expected = np.asarray(SAMPLER.indices(tf.constant(step)))
        assert np.array_equal(labels, expected)
        assert np.array_equal(indices, expected)
        assert np.array_equal(random_numbers, SAMPLER.random_numbers(tf.constant(step)))
        assert positions.tolist() == list(range(8))
        assert np.array_equal(images, np.asarray(data.images)[expected])


@pytest.mark.parametrize(
    ("num_pipelines", "replicas", "rounds"), [(1, 1, 5), (2, 1, 3), (1, 3, 2), (2, 2, 2), (7, 1, 1)]
)
def test_evaluation_sees_each_example_once(num_pipelines: int, replicas: int, rounds: int) -> None:
    seen = []
    for number in range(num_pipelines):
        shard = Shard(pipeline=number, num_pipelines=num_pipelines, replicas_per_pipeline=replicas)
        assert evaluation_rounds(examples(), 8, shard.num_replicas) == rounds
        elements = list(evaluation_batches(examples(), 8, shard))
        assert len(elements) == rounds * replicas
        for _, labels, weights in elements:
            seen += [(int(label), float(weight)) for label, weight in zip(labels, weights, strict=True)]
    assert sorted(label for label, weight in seen if weight) == list(range(37))
    assert {weight for _, weight in seen} == {0.0, 1.0}
