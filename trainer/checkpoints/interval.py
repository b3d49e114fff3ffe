"""How often to save: the interval that loses least to saves and to failures together."""

from __future__ import annotations

import math

SECONDS_BETWEEN_FAILURES = 2 * 3600.0
"""Assumed of a Spot machine where the user does not say otherwise."""
SHORTEST_SECONDS = 10.0
FIRST_SECONDS = 30.0
"""Until a save has been measured."""


def seconds(save_seconds: float | None, seconds_between_failures: float = SECONDS_BETWEEN_FAILURES) -> float:
    """Seconds between two saves: sqrt(2 C M), Young's formula (doi:10.1145/361147.361115).

    Args:
        save_seconds: C, for which training stands still in a save; None: not measured yet.
        seconds_between_failures: M, the mean.
    """
    if save_seconds is None:
        return FIRST_SECONDS
    return max(SHORTEST_SECONDS, math.sqrt(2 * save_seconds * seconds_between_failures))
