"""The champion's score before its export, which exchanged class names take away, and images of another kind."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exact_resume.files import storage
from trainer.checkpoints.seen import Numbers
from trainer.models.metrics import ACCURACY, METRICS, confusion_matrix, score_of
from trainer.results import exported
from trainer.results.comparison.class_names import first_of
from trainer.results.comparison.not_comparable import NotComparable
from trainer.results.significance import SIGNIFICANCE, Labels, p_mcnemar

_RESTORED = 0.75
"""Fraction of the loss that exchanged names restore if they are its reason; the images may have changed, too."""


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


def read(directory: str) -> ChampionRecord:
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
