"""Evaluates a model and the champion on the same images, whose pixels are those that the prediction server makes."""

import dataclasses
import functools
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from exact_resume.files import storage
from exact_resume.files.overlap import batched, in_order
from localvertex._base.userinput.spelling import on_one_line
from trainer.checkpoints import restored, seen
from trainer.checkpoints.best import BestCheckpoint
from trainer.checkpoints.seen import Numbers
from trainer.data.dataset import Dataset
from trainer.data.images import Pixels, to_pixels
from trainer.models.metrics import ACCURACY, METRICS, confusion_matrix, score_of
from trainer.results import exported, saved_model
from trainer.results.comparison import class_names, evidence, images
from trainer.results.comparison.class_names import Classes, first_of
from trainer.results.comparison.decision import ClassResult, Comparison, Fall, scores_of
from trainer.results.comparison.evidence import Evidence
from trainer.results.comparison.images import Image
from trainer.results.comparison.not_comparable import NotComparable
from trainer.results.significance import SIGNIFICANCE, Labels, p_mcnemar

_BATCH = 32
_FALL = 0.05
"""Loss of the champion's score that is reported."""


_RESTORED = 0.75
"""Fraction of the loss that exchanged names restore if they are its reason; the images may have changed as well."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Model:
    """One of the two models."""

    name: str
    """Name in messages."""
    image_size: int
    class_names: Sequence[str]
    predict: Callable[[Pixels], npt.NDArray[np.float32]]
    """Maps images uint8 [B, S, S, 3] to probabilities float32 [B, K]."""

    def answer(self, pixels: Sequence[Pixels]) -> list[str]:
        """Return the class of each image uint8 [S, S, 3].

        Raises:
            NotComparable: The probabilities are not finite, or not one for each class.
        """
        scores = self.predict(np.stack(pixels))
        if scores.shape != (expected := (len(pixels), len(self.class_names))):
            raise NotComparable(f"the {self.name} returns probabilities of shape {scores.shape}, not {expected}")
        if not np.isfinite(scores).all():
            raise NotComparable(
                f"the {self.name} returns probabilities that are not finite numbers (NaN or infinite); its weights are"
                " damaged",
                is_final=True,
            )
        return [self.class_names[index] for index in scores.argmax(axis=1)]


def compare(
    *,
    data: Dataset,
    chosen: BestCheckpoint,
    checkpoint_directory: str,
    champion_folder: str,
    champion_checkpoints: str = "",
    source: str,
    min_compared_images: int,
) -> Comparison:
    """Evaluate the best checkpoint of a run, and the champion.

    Args:
        data: The dataset of the run.
        chosen: Its best checkpoint.
        checkpoint_directory: Its checkpoint folder.
        champion_folder: The champion's SavedModel.
        champion_checkpoints: The checkpoint folder of its run, which may be gone; empty if it is not known.
        source: The source of the dataset; read again if the image sizes differ.
        min_compared_images: Fewest images that neither has seen.

    Raises:
        NotComparable: A fair comparison is impossible.
        UserError: A shard is missing or damaged.
    """
    own = evidence.seen_by("new model", storage.join(checkpoint_directory, seen.FILE))
    champion = _load_champion(champion_folder)
    seen_by_champion = evidence.seen_by(
        "champion",
        storage.join(champion_folder, exported.SEEN_FILE),
        beside=champion_checkpoints and storage.join(champion_checkpoints, seen.FILE),
    )
    classes = class_names.match(champion.class_names, data.class_names)
    found = evidence.of(data, own, seen_by_champion)
    _check_number(found, classes, min_compared_images)
    has_originals = champion.image_size != data.image_size
    network = restored.model_of(chosen, data).model
    call = tf.function(lambda pixels: network(pixels, training=False), autograph=False)
    challenger = _Model(
        name="new model",
        image_size=data.image_size,
        class_names=data.class_names,
        predict=lambda pixels: np.asarray(call(pixels)),
    )

    def answers(shown: Evidence) -> tuple[Labels, Labels, Labels]:
        read = images.originals(data, shown, source) if has_originals else images.prepared_images(data, shown)
        return _answers_of(champion, challenger, read, classes)

    past, shown = _read_record(champion_folder), found.of_classes(classes.common)
    labels, first, second = answers(shown)
    past.refuse_exchanged(labels, first, classes.common)
    fall, score = None, functools.partial(score_of, past.metric, num_classes=len(classes.common))
    if past.score is not None and (now := score(labels, first)) < past.score - _FALL:
        tested = shown.among(past.test_images)
        own_labels, *both = answers(tested)
        own_first, own_second = (score(own_labels, each) for each in both)
        fall = Fall(
            metric=past.metric, recorded=past.score, now=now, num_own=len(own_labels), own=(own_first, own_second)
        )
    return dataclasses.replace(
        result(labels, first, second, classes=classes, metric=chosen.config.metric),
        fall=fall,
        num_left_out=found.num_seen,
        num_copies=found.num_copies,
        has_originals=has_originals,
        unknown=found.num_images(classes.only_challenger),
    )


def _load_champion(folder: str) -> _Model:
    try:
        loaded = saved_model.load(folder)
        loaded.predict(np.zeros((1, loaded.image_size, loaded.image_size, 3), np.uint8))
    # Whatever is wrong with the files, or with operations and outputs that this TensorFlow or the model does not have.
    except Exception as error:
        if isinstance(error, OSError) and not isinstance(error, storage.MISSING):
            # Of a bucket that is unavailable now.
            raise
        raise NotComparable(f"the champion cannot be evaluated: {on_one_line(error, 300)}") from error
    return _Model(name="champion", image_size=loaded.image_size, class_names=loaded.class_names, predict=loaded.predict)


def _check_number(found: Evidence, classes: Classes, min_compared_images: int) -> None:
    """Print the number of images; refuse too few, or images of one class, because a constant answer gets them right."""
    kept, unknown = found.num_images(classes.common), found.num_images(classes.only_challenger)
    num_kept = sum(kept.values())
    left_out = found.left_out or "none left out"
    print(f"{num_kept:,} test images to compare; {left_out}")
    if unknown:
        print(
            f"{sum(unknown.values()):,} more left out: the champion does not know the classes"
            f" {class_names.quoted_list(unknown)}"
        )
    of_common = " of classes that both models know" if classes.only_challenger else ""
    if num_kept < min_compared_images:
        raise NotComparable(
            f"only {num_kept:,} test images{of_common} were seen by neither model, fewer than min_compared_images"
            f" {min_compared_images:,} ({left_out})",
            is_final=True,
        )
    if len(kept) < class_names.FEWEST:
        raise NotComparable(
            f"the {num_kept:,} test images{of_common} that neither model has seen are all of the class"
            f" {class_names.quoted_list(kept)}; add test images of other classes",
            is_final=True,
        )


def _answers_of(
    champion: _Model, challenger: _Model, shown: Iterable[Image], classes: Classes
) -> tuple[Labels, Labels, Labels]:
    """Return the true class and both answers of each image.

    All are int32 [N]: indices into the common classes, then the challenger's.
    """
    models = (champion, challenger)
    numbers = {name: index for index, name in enumerate((*classes.common, *classes.only_challenger))}

    def decode(image: Image) -> tuple[str, list[Pixels]]:
        data, name = image
        return name, [to_pixels(data, model.image_size) for model in models]

    batches = [np.empty((3, 0), np.int32)]
    for batch in batched(in_order(decode, shown, num_threads=os.cpu_count() or 1), _BATCH):
        rows = [[name for name, _ in batch]]
        rows += [model.answer([pixels[index] for _, pixels in batch]) for index, model in enumerate(models)]
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
    """
    num_common = len(classes.common)
    # Answers outside the common classes are wrong.
    first, second = (np.minimum(each, num_common) for each in (champion, challenger))
    table, scores = scores_of(metric, labels, first, second, num_common)
    per_class = _count(labels, first == labels, second == labels, classes)
    return Comparison(table=table, scores=scores, classes=per_class)


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


@dataclass(frozen=True, kw_only=True)
class ChampionRecord:
    """How a model was evaluated before its export."""

    metric: str
    score: float | None
    """None: unknown."""
    test_images: Numbers

    def refuse_exchanged(self, labels: Labels, answers: Labels, class_names: Sequence[str]) -> None:
        """Refuse class names that the model knows for the images of each other.

        Args:
            labels: True classes [N].
            answers: Answers of the model [N].
            class_names: K names.

        Raises:
            NotComparable: With these names exchanged, the model has its score again.
        """
        classes = np.arange(len(class_names))
        counts = confusion_matrix(labels, answers, len(classes))
        is_known = 2 * counts.max(axis=1) > counts.sum(axis=1)
        known_as, cyclic = np.where(is_known, counts.argmax(axis=1), classes), classes
        for _ in classes:
            cyclic = np.unique(known_as[cyclic])
        moved = cyclic[known_as[cyclic] != cyclic]
        exchanged = np.where(np.isin(classes, moved), known_as, classes)
        now, then = (score_of(self.metric, each, answers, len(classes)) for each in (labels, exchanged[labels]))
        lost = 0.0 if self.score is None else self.score - now
        p_value = p_mcnemar(int(counts[moved, known_as[moved]].sum()), int(counts[moved, moved].sum()))
        if p_value < SIGNIFICANCE and then - now >= _RESTORED * lost:
            recorded = "" if self.score is None else f" ({self.score:.2%} before its export)"
            pairs = first_of([f"{class_names[each]!r} as {class_names[known_as[each]]!r}" for each in moved])
            raise NotComparable(
                f"classes seem to be exchanged: the champion knows {pairs}, and has {self.metric} {now:.2%}, but"
                f" {then:.2%} with the names exchanged{recorded}; give the folders their names back",
                is_final=True,
            )


def _read_record(directory: str) -> ChampionRecord:
    """Return the record in an exported model; models of earlier versions have none."""
    metadata, path = exported.read(directory), storage.join(directory, exported.TESTED_FILE)
    metric, score = metadata.get("metric"), metadata.get("score")
    is_known = isinstance(score, float) and metric in (*METRICS,)
    content = storage.read_bytes(path) if storage.exists(path) else b""
    return ChampionRecord(
        metric=str(metric) if is_known else ACCURACY,
        score=score if is_known else None,
        test_images=np.frombuffer(content[: len(content) // 8 * 8], exported.TESTED_TYPE).astype(np.uint64),
    )
