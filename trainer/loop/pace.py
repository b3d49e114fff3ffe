"""How many steps go into one graph call: as many as fit into a bounded time."""

from __future__ import annotations

TARGET_SECONDS = 2.0
"""Aim of a call. A stop request, the progress bar and a save wait for at most one call, so well below five seconds."""
_GROWTH = 4
"""A call has at most so many times the steps of the one before: the first calls include tracing and warm-up."""


class Pace:
    """Learns from each call how long a step takes."""

    def __init__(self, target_seconds: float = TARGET_SECONDS) -> None:
        self._target_seconds = target_seconds
        self.num_steps = 1
        """Steps that fit into the next call."""

    def record(self, num_steps: int, seconds: float) -> None:
        """Learn from a call that is done."""
        fitting = int(self._target_seconds * num_steps / max(seconds, 1e-6))
        self.num_steps = max(1, min(fitting, num_steps * _GROWTH))
