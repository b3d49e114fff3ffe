"""The section of a report with the probable label errors: a gallery, or why there is none."""

from collections.abc import Sequence

import numpy as np

from localvertex_base.userinput.cli import one_line
from localvertex_base.userinput.spelling import join_or
from trainer.data.dataset import Dataset
from trainer.data.pages import page
from trainer.results.confident_learning import MIN_IMAGES_OF_CLASS, MIN_RECALL, LabelErrors
from trainer.results.predictions import Predictions

_TITLE = "Probable label errors"
_NUM_SHOWN = 24
_NUM_NAMED = 10


def block(found: LabelErrors, dataset: Dataset, predictions: Sequence[Predictions], *, all_lines: str) -> page.Block:
    """Return the section.

    Args:
        found: The label errors, as positions in all predictions together.
        dataset: The dataset; the shards of the splits must be on this machine.
        predictions: Predictions on the splits that were checked.
        all_lines: A sentence on where all label errors are listed; empty if there is no list.
    """
    if found.reason:
        return page.Text(title=_TITLE, text=f"The labels were not checked. {found.reason}")
    splits = join_or([each.split for each in predictions], "and")
    num_images = sum(len(each.labels) for each in predictions)
    num_right = sum(int((each.probabilities.argmax(axis=1) == each.labels).sum()) for each in predictions)
    checked = f"A model that was not fitted to these {num_images:,} {splits} images has checked their labels."
    notes = [checked, f"It agrees with {num_right / num_images:.1%} of them."]
    if unknown := found.unknown:
        names = [one_line(dataset.class_names[label]) for label in unknown[:_NUM_NAMED]]
        more = [f"{len(unknown) - _NUM_NAMED:,} more"] if len(unknown) > _NUM_NAMED else []
        notes.append(
            f"Classes that were not checked, because the model recognises fewer than {MIN_RECALL:.0%} of their images"
            f" or there are fewer than {MIN_IMAGES_OF_CLASS}: {join_or(names + more, 'and')}."
        )
    if not found.indices:
        none = f"No {'label of the other classes' if found.unknown else 'label'} is probably wrong."
        return page.Text(title=_TITLE, text=" ".join([*notes, none]))
    shown = found.indices[:_NUM_SHOWN]
    notes.append(f"{len(found.indices):,} labels are probably wrong.")
    if len(found.indices) > len(shown):
        notes += filter(None, [f"The {len(shown)} most certain ones are shown.", all_lines])
    else:
        notes.append("The most certain one comes first.")
    notes.append("Look at an image before you change its label: the model may be wrong.")
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
