"""The section of a report with the probable label errors: a gallery, or why there is none."""

from collections.abc import Sequence

import numpy as np

from trainer.data.dataset import Dataset
from trainer.results.label_errors.confident_learning import MIN_IMAGES_OF_CLASS, MIN_RECALL, LabelErrors
from trainer.results.predictions import Predictions
from trainer.results.report import page
from vertex_gpu_training.userinput.cli import one_line
from vertex_gpu_training.userinput.spelling import listed

_TITLE = "Probable label errors"
_NUM_SHOWN = 24
_NUM_NAMED = 10


def block(found: LabelErrors, dataset: Dataset, predictions: Sequence[Predictions], *, all_lines: str) -> page.Block:
    """Return the section.

    Args:
        found: Positions in all predictions together.
        dataset: The dataset; the shards of the splits must be on this machine.
        predictions: Of the splits that were judged.
        all_lines: A sentence on where all of them are listed; empty if they are nowhere.
    """
    if found.reason:
        return page.Text(title=_TITLE, text=f"The labels were not judged. {found.reason}")
    splits = listed([each.split for each in predictions], "and")
    num_images = sum(len(each.labels) for each in predictions)
    num_right = sum(int((each.probabilities.argmax(axis=1) == each.labels).sum()) for each in predictions)
    judged = f"The labels of {num_images:,} {splits} images were judged by a model that was not fitted to them."
    notes = [judged, f"It agrees with {num_right / num_images:.1%} of them."]
    if unknown := found.unknown:
        names = [one_line(dataset.class_names[label]) for label in unknown[:_NUM_NAMED]]
        more = [f"{len(unknown) - _NUM_NAMED:,} more"] if len(unknown) > _NUM_NAMED else []
        notes.append(
            f"Not judged, because the model recognises fewer than {MIN_RECALL:.0%} of their images, or there are fewer"
            f" than {MIN_IMAGES_OF_CLASS}: {listed(names + more, 'and')}."
        )
    if not found.indices:
        none = f"No {'label of the other classes' if found.unknown else 'label'} is probably wrong."
        return page.Text(title=_TITLE, text=" ".join([*notes, none]))
    shown = found.indices[:_NUM_SHOWN]
    if len(found.indices) > len(shown):
        which = " ".join(filter(None, [f"the {len(shown)} most certain are shown.", all_lines]))
    else:
        which = "the most certain comes first."
    notes.append(
        f"{len(found.indices):,} labels are probably wrong; {which} Look at an image before you change its label: the"
        " model may be wrong."
    )
    images = [_thumbnail(position, dataset, predictions) for position in shown]
    return page.Gallery(title=_TITLE, note=" ".join(notes), images=images)


def _thumbnail(position: int, dataset: Dataset, predictions: Sequence[Predictions]) -> page.Thumbnail:
    starts = np.cumsum([0, *(len(each.labels) for each in predictions)])
    number = int(np.searchsorted(starts, position, side="right")) - 1
    found, index = predictions[number], position - int(starts[number])
    (record,) = dataset.records(found.split, [index])
    predicted = int(found.probabilities[index].argmax())
    label, probable = (dataset.class_names[each] for each in (record.label, predicted))
    return page.Thumbnail(
        image_bytes=record.image_bytes,
        caption=f"labelled {label}, probably {probable}",
        detail=f"{found.probabilities[index, predicted]:.0%} confident, {found.split}, {record.file_name}",
    )
