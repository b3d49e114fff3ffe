"""Evaluates a model and the champion on the same images."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from exact_resume.files import storage
from exact_resume.files.overlap import batched
from trainer.checkpoints import restored, seen
from trainer.checkpoints.best import BestCheckpoint
from trainer.data.dataset import Dataset
from trainer.models.metrics import ACCURACY
from trainer.results import serving
from trainer.results.comparison import champion as champions, class_names, images
from trainer.results.comparison.class_names import Classes
from trainer.results.comparison.decision import ClassResult, Comparison, scores_of
from trainer.results.comparison.images import Image, Unseen
from trainer.results.comparison.not_comparable import NotComparable

_BATCH = 32
_NO_RECORD = f"its file {seen.FILE} or {seen.FILE}{seen.SECOND} is missing, empty or damaged"
_Answer = Callable[[Sequence[bytes]], list[str]]
Labels = npt.NDArray[Any]


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
        checkpoint_directory: Its checkpoint folder.
        champion_folder: The champion's SavedModel.
        source: The source of the dataset; read again if the image sizes differ.
        min_compared_images: Fewest images that neither has seen.

    Raises:
        NotComparable: A fair comparison is impossible.
        UserError: A shard is missing or damaged.
    """
    own = seen.read(storage.join(checkpoint_directory, seen.FILE))
    if own is None:
        raise NotComparable(f"it is not known which images the new model has seen: {_NO_RECORD}", is_final=True)
    with champions.load(champion_folder) as champion:
        if champion.seen_images is None:
            raise NotComparable(f"it is not known which images the champion has seen: {_NO_RECORD}", is_final=True)
        classes = class_names.match(champion.class_names, data.class_names)
        found = images.unseen(data, own, champion.seen_images)
        _check_number(found, classes, min_compared_images)
        # Images of new classes show whether the champion knows them under names that the dataset no longer has.
        shown = found if classes.only_champion else found.of_classes(classes.common)
        has_originals = champion.image_size != data.image_size
        read = images.originals(data, shown, source) if has_originals else images.prepared_images(data, shown)
        answers = _answers_of(champion.answer, _challenger(chosen, data), read, classes)
    return dataclasses.replace(
        result(*answers, classes=classes, metric=chosen.config.metric),
        num_left_out=found.num_left_out,
        num_resaved=found.num_resaved,
        has_originals=has_originals,
        unknown=found.num_images(classes.only_challenger),
    )


def _check_number(found: Unseen, classes: Classes, min_compared_images: int) -> None:
    """Print the number of images; refuse too few, or images of one class, because a constant answer gets them right."""
    kept, unknown = found.num_images(classes.common), found.num_images(classes.only_challenger)
    num_kept = sum(kept.values())
    resaved = f", {found.num_resaved:,} of them saved again" if found.num_resaved else ""
    left_out = f"{found.num_left_out:,} left out because a model has seen them{resaved}"
    print(f"{num_kept:,} test images to compare; {left_out}")
    if unknown:
        print(
            f"{sum(unknown.values()):,} more left out: the champion does not know the classes"
            f" {class_names.quoted_list(unknown)}"
        )
    if classes.only_champion:
        print(f"notice: the new model does not know the classes {class_names.quoted_list(classes.only_champion)}")
    of_common = " of classes that both models know" if classes.only_challenger else ""
    if num_kept < min_compared_images:
        raise NotComparable(
            f"only {num_kept:,} test images{of_common} were seen by neither model, fewer than min_compared_images"
            f" {min_compared_images:,} ({left_out})",
            is_final=True,
        )
    if len(kept) < class_names.FEWEST_COMMON:
        raise NotComparable(
            f"the {num_kept:,} test images{of_common} that neither model has seen are all of the class"
            f" {class_names.quoted_list(kept)}; add test images of other classes",
            is_final=True,
        )


def _challenger(chosen: BestCheckpoint, data: Dataset) -> _Answer:
    """Return what the exported model would answer."""
    model = restored.model_of(chosen, data).model

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)  # type: ignore[untyped-decorator]
    def classify(image_bytes: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        scores = model(serving.decode_and_resize(image_bytes, data.image_size), training=False)
        return tf.argmax(scores, axis=-1), tf.reduce_all(tf.math.is_finite(scores))

    def answer(encoded: Sequence[bytes]) -> list[str]:
        indices, is_finite = classify(tf.constant(encoded, tf.string))
        if not is_finite:
            raise NotComparable("the new model returns scores that are not finite numbers", is_final=True)
        return [data.class_names[index] for index in indices.numpy()]

    return answer


def _answers_of(
    champion: _Answer, challenger: _Answer, shown: Iterable[Image], classes: Classes
) -> tuple[Labels, Labels, Labels]:
    """Return the true class and both answers of each image.

    All are int32 [N]: indices into the common classes, then the champion's, then the challenger's. -1 means an
    image that the model cannot decode.
    """
    known = (*classes.common, *classes.only_champion, *classes.only_challenger)
    numbers: dict[str | None, int] = {name: index for index, name in enumerate(known)} | {None: -1}
    batches = [np.empty((3, 0), np.int32)]
    for batch in batched(shown, _BATCH):
        encoded = [image for image, _ in batch]
        rows = ([name for _, name in batch], _answers(champion, encoded), _answers(challenger, encoded))
        batches.append(np.array([[numbers[name] for name in row] for row in rows], np.int32))
    labels, first, second = np.concatenate(batches, axis=1)
    return labels, first, second


def result(
    labels: Labels, champion: Labels, challenger: Labels, *, classes: Classes, metric: str = ACCURACY
) -> Comparison:
    """Return both models' results on images of the common classes.

    Args:
        labels: True classes [N]; see `_answers_of`.
        champion: Answers of the champion [N].
        challenger: Answers of the new model [N].
        classes: The classes of both models.
        metric: One of `trainer.models.metrics.METRICS`.

    Raises:
        NotComparable: The champion decodes no image, or knows a new class under another name.
    """
    num_common, names = len(classes.common), classes.only_challenger
    num_known = num_common + len(classes.only_champion)
    is_new, is_lost = labels >= num_known, (champion >= num_common) & (champion < num_known)
    num_images, num_as_lost = (
        dict(zip(names, np.bincount(labels[each] - num_known, minlength=len(names)).tolist(), strict=True))
        for each in (is_new, is_new & is_lost)
    )
    class_names.refuse_renamed(num_images, num_as_lost, classes)
    is_compared = labels < num_common
    labels, champion, challenger = labels[is_compared], champion[is_compared], challenger[is_compared]
    num_unanswered = int((champion < 0).sum()), int((challenger < 0).sum())
    if num_unanswered[0] == len(labels):
        raise NotComparable("the champion cannot decode any of the images")
    # Answers outside the common classes are wrong.
    first, second = (np.where((each < 0) | (each > num_common), num_common, each) for each in (champion, challenger))
    table, scores = scores_of(metric, labels, first, second, num_common)
    per_class = _count(labels, first == labels, second == labels, classes)
    return Comparison(
        table=table, scores=scores, classes=per_class, num_unanswered=num_unanswered, missing=classes.only_champion
    )


def _count(labels: Labels, is_first: Labels, is_second: Labels, classes: Classes) -> list[ClassResult]:
    """Return the correct answers per class that has images."""
    num_images, first, second = (
        np.bincount(each, minlength=len(classes.common)).tolist()
        for each in (labels, labels[is_first], labels[is_second])
    )
    return [
        ClassResult(class_name=name, num_images=num_images[index], champion=first[index], challenger=second[index])
        for index, name in enumerate(classes.common)
        if num_images[index]
    ]


def _answers(answer: _Answer, encoded: list[bytes]) -> list[str | None]:
    """Return the answers; None for an image that the model cannot decode, which would fail the whole batch."""
    try:
        return list(answer(encoded))
    except tf.errors.InvalidArgumentError:
        return [None] if len(encoded) == 1 else [each for image in encoded for each in _answers(answer, [image])]
