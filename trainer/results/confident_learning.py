"""Probable label errors by confident learning, among images that the model was not fitted to.

Northcutt, Jiang, Chuang, "Confident Learning: Estimating Uncertainty in Dataset Labels", JAIR 70, 2021: an image
labelled i is a probable error if its probability of another class j is at least the mean that images labelled j have.
These are the off-diagonals of the confident joint. Two additions keep a weak or overconfident model from flagging most
images: one temperature calibrates the probabilities first (Guo et al., "On Calibration of Modern Neural Networks", ICML
2017), and j has to be far more probable than i.

Legend: N images, K classes.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

MIN_IMAGES = 50
"""With fewer images, neither the temperature nor the thresholds can be estimated."""
MIN_IMAGES_OF_CLASS = 5
MIN_RECALL = 0.5
"""Recall of a class on these images below which the model has not learned the class, so its labels are not checked."""
MIN_DIFFERENCE = 0.5
"""Smallest difference of the calibrated probabilities of the other class and of the label."""
_MAX_FRACTION = 0.2
"""Largest fraction of images to flag; above it, the model is more probably wrong than the labels."""
_TEMPERATURES = np.geomspace(0.25, 64, 33)
_MAX_FITTED = 10_000
"""Number of images to which the temperature is fitted; more are not needed for one parameter."""
_CHUNK = 2_000
_SMALLEST = 1e-12
_Labels = npt.NDArray[np.int32]
_Values = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class LabelErrors:
    """Result of a check of labels."""

    indices: tuple[int, ...] = ()
    """Images whose label is probably wrong, the most certain first; the predicted class is the probable one."""
    unknown: tuple[int, ...] = ()
    """Classes with too few images or too low a recall; images with this label or prediction are not checked."""
    reason: str = ""
    """Why the labels were not checked; empty if they were."""


def find(labels: _Labels, probabilities: npt.NDArray[np.float32]) -> LabelErrors:
    """Find the labels that are probably wrong.

    Args:
        labels: Labels int32 [N].
        probabilities: Values float32 [N, K] of a model that was not fitted to these images.
    """
    if len(labels) < MIN_IMAGES:
        return LabelErrors(reason=f"There are only {len(labels)} images; {MIN_IMAGES} are needed.")
    predicted = probabilities.argmax(axis=1)
    counts = np.bincount(labels, minlength=probabilities.shape[1])
    recall = np.bincount(labels, weights=predicted == labels, minlength=len(counts)) / np.maximum(counts, 1)
    is_known = (counts >= MIN_IMAGES_OF_CLASS) & (recall >= MIN_RECALL)
    if not is_known.any():
        return LabelErrors(
            reason=f"No class has {MIN_IMAGES_OF_CLASS} images of which the model recognises at least {MIN_RECALL:.0%}."
        )
    own, highest = _calibrate(labels, probabilities, temperature(labels, probabilities))
    thresholds = np.bincount(labels, weights=own, minlength=len(counts)) / np.maximum(counts, 1)
    is_error = (
        (predicted != labels)
        & (highest >= thresholds[predicted])
        & (highest - own >= MIN_DIFFERENCE)
        & is_known[labels]
        & is_known[predicted]
    )
    indices = np.flatnonzero(is_error)
    if len(indices) > _MAX_FRACTION * len(labels):
        return LabelErrors(
            reason=f"{len(indices):,} of {len(labels):,} would count as errors, more than {_MAX_FRACTION:.0%};"
            " the model is probably not good enough."
        )
    ranked = indices[np.argsort(own[indices] - highest[indices], kind="stable")]
    return LabelErrors(indices=tuple(ranked.tolist()), unknown=tuple(np.flatnonzero(~is_known).tolist()))


def temperature(labels: _Labels, probabilities: npt.NDArray[np.float32]) -> float:
    """Return the temperature: the divisor of the logits with which the probabilities fit the labels best."""
    step = -(-len(labels) // _MAX_FITTED)
    some = labels[::step], probabilities[::step]
    losses = [-np.log(np.maximum(_calibrate(*some, value)[0], _SMALLEST)).mean() for value in _TEMPERATURES]
    return float(_TEMPERATURES[np.argmin(losses)])


def _calibrate(labels: _Labels, probabilities: npt.NDArray[np.float32], temperature: float) -> tuple[_Values, _Values]:
    """Return the calibrated probabilities of the label and of the prediction, float64 [N] each."""
    own, highest = np.empty(len(labels)), np.empty(len(labels))
    # In chunks, because a copy of the whole matrix may not fit into memory.
    for start in range(0, len(labels), _CHUNK):
        part = slice(start, start + _CHUNK)
        logits = np.log(np.maximum(probabilities[part].astype(np.float64), _SMALLEST)) / temperature
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        total = powers.sum(axis=1)
        own[part] = powers[np.arange(len(powers)), labels[part]] / total
        highest[part] = 1 / total
    return own, highest
