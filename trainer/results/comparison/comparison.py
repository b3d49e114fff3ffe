"""Evaluates a model and the champion on the same images."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import tensorflow as tf

from trainer.checkpoints import restored
from trainer.checkpoints.best import BestCheckpoint
from trainer.data.dataset import Dataset
from trainer.files import storage
from trainer.results import seen, serving
from trainer.results.comparison import champion as champions, images
from trainer.results.comparison.champion import Champion
from trainer.results.comparison.decision import ClassResult, Comparison, Table
from trainer.results.comparison.images import Image, Unseen
from trainer.results.comparison.not_comparable import NotComparable

_BATCH = 32
_Answer = Callable[[Sequence[bytes]], list[str]]


def compare(
    *,
    data: Dataset,
    chosen: BestCheckpoint,
    checkpoint_directory: str,
    champion_folder: str,
    source: str,
    min_compared_images: int,
) -> Comparison:
    """Evaluate the best checkpoint of a run, and the champion.

    Args:
        data: The dataset of the run.
        chosen: Its best checkpoint.
        checkpoint_directory: Its checkpoint directory.
        champion_folder: The champion's SavedModel.
        source: The source of the dataset; read again if the image sizes differ.
        min_compared_images: Fewest images that neither has seen.

    Raises:
        NotComparable: A fair comparison is impossible.
        UserError: A shard is missing or damaged.
    """
    own = seen.read(storage.join(checkpoint_directory, seen.FILE))
    if own is None:
        raise NotComparable("it is not known which images the new model has seen", is_final=True)
    with champions.opened(champion_folder) as champion:
        if champion.seen_images is None:
            raise NotComparable("it is not known which images the champion has seen", is_final=True)
        found = images.unseen(data, own, champion.seen_images)
        num_kept = len(found.content_hashes)
        print(f"{num_kept:,} test images to compare; {found.num_left_out:,} left out, which one of the models has seen")
        if num_kept < min_compared_images:
            raise NotComparable(
                f"only {num_kept:,} test images were seen by neither model, fewer than min_compared_images"
                f" {min_compared_images:,}",
                is_final=True,
            )
        has_originals = champion.image_size != data.image_size
        shown = images.originals(data, found, source) if has_originals else images.stored(data, found)
        return _evaluate(champion, _challenger(chosen, data), shown, found, has_originals=has_originals)


def _challenger(chosen: BestCheckpoint, data: Dataset) -> _Answer:
    """Return what the exported model would answer."""
    model = restored.model_of(chosen, data).model

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)  # type: ignore[untyped-decorator]
    def classify(image_bytes: tf.Tensor) -> tf.Tensor:
        return tf.argmax(model(serving.decode_and_resize(image_bytes, data.image_size), training=False), axis=-1)

    return lambda encoded: [data.class_names[index] for index in classify(tf.constant(encoded, tf.string)).numpy()]


def _evaluate(
    champion: Champion, challenger: _Answer, shown: Iterable[Image], found: Unseen, *, has_originals: bool
) -> Comparison:
    cells: Counter[tuple[str, bool, bool]] = Counter()
    unanswered = [0, 0]
    remaining = iter(shown)
    while batch := list(itertools.islice(remaining, _BATCH)):
        encoded, expected = [image for image, _ in batch], [name for _, name in batch]
        answers = [_answers(answer, encoded) for answer in (champion.answer, challenger)]
        unanswered = [count + each.count(None) for count, each in zip(unanswered, answers, strict=True)]
        cells.update(
            (name, first == name, second == name) for name, first, second in zip(expected, *answers, strict=True)
        )
    if unanswered[0] == cells.total():
        raise NotComparable("the champion cannot decode any of the images")
    sums: Counter[tuple[bool, bool]] = Counter()
    for (_, *right), count in cells.items():
        sums[right[0], right[1]] += count
    return Comparison(
        table=Table(
            both=sums[True, True],
            only_champion=sums[True, False],
            only_challenger=sums[False, True],
            neither=sums[False, False],
        ),
        classes=[_class(name, cells, champion) for name in sorted({name for name, *_ in cells})],
        num_left_out=found.num_left_out,
        has_originals=has_originals,
        num_unanswered=(unanswered[0], unanswered[1]),
    )


def _class(name: str, cells: Counter[tuple[str, bool, bool]], champion: Champion) -> ClassResult:
    found = {right: cells[name, right[0], right[1]] for right in itertools.product((True, False), (True, False))}
    return ClassResult(
        class_name=name,
        num_images=sum(found.values()),
        champion=found[True, True] + found[True, False],
        challenger=found[True, True] + found[False, True],
        is_known=champion.class_names is None or name in champion.class_names,
    )


def _answers(answer: _Answer, encoded: list[bytes]) -> list[str | None]:
    """Return the answers; None for an image that the model cannot decode, which would fail the whole batch."""
    try:
        return list(answer(encoded))
    except tf.errors.InvalidArgumentError:
        return [None] if len(encoded) == 1 else [each for image in encoded for each in _answers(answer, [image])]
