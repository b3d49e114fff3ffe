"""Calibrated probabilities by temperature scaling (Guo et al., "On Calibration of Modern Neural Networks", 2017).

A temperature T > 1 makes a model less certain, T < 1 more: softmax(log p / T). The most probable class stays the same.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from trainer.results.predictions import Predictions

SMALLEST = 1e-37
"""Added to each probability, so that 0 has a logarithm; a normal float32, which no processor takes for 0."""


def fit(validation: Predictions) -> float:
    """Return the temperature from 0.1 to 10 with the smallest cross-entropy on the validation split.

    It is 1, and a line says so, if there are fewer than 50 images, or no mistakes, which lower temperatures fit ever
    better, or if the best one is at a limit.

    Args:
        validation: Predictions of the network, which are finite.
    """
    from scipy import optimize

    labels = validation.labels
    own = np.arange(len(labels)), labels
    found = optimize.fminbound(
        lambda each: -np.log(apply(validation.probabilities, each)[own] + SMALLEST).mean(), 0.1, 10
    )
    # The search does not quite reach its limits.
    if len(labels) >= 50 and (validation.probabilities.argmax(axis=1) != labels).any() and 0.101 < found < 9.9:
        return float(found)
    print(
        f"notice: the probabilities are not calibrated: no temperature from 0.1 to 10 follows from {len(labels):,}"
        " validation images; expected at least 50, of which some are misclassified"
    )
    return 1.0


def apply(probabilities: npt.NDArray[Any], temperature: float) -> Any:
    """Return the probabilities float64 [N, K] at a temperature."""
    from scipy import special

    return special.softmax(np.log(probabilities.astype(np.float64) + SMALLEST) / temperature, axis=1)


def expected_error(found: Predictions) -> float:
    """Return the expected calibration error with 15 bins of equal width, 0 to 1 (Naeini et al., 2015)."""
    confidence = found.probabilities.max(axis=1)
    gaps = confidence - (found.probabilities.argmax(axis=1) == found.labels)
    return float(np.abs(np.bincount(np.ceil(confidence * 15).astype(int), gaps)).sum() / len(gaps))
