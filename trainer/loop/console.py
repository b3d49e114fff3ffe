"""Show a training run to the user, in plain lines."""

import time
from collections.abc import Callable
from typing import Any

_SECONDS_BETWEEN_LINES = 10.0
"""Shortest time between two printed lines about training steps."""


class PlainLines:
    """Prints one line per event to standard output."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_steps_line = -_SECONDS_BETWEEN_LINES

    def __call__(self, event: str, **fields: Any) -> None:
        """Print the event if it is of interest to a user."""
        if event == "steps":
            if self._clock() - self._last_steps_line < _SECONDS_BETWEEN_LINES:
                return
            self._last_steps_line = self._clock()
        if line := _describe(event, fields):
            print(line, flush=True)


def _describe(event: str, fields: dict[str, Any]) -> str:
    """Return the event in words, or an empty text for events that only programs need."""
    if event == "start":
        length = f"{fields['num_steps']} steps ({fields['steps_per_epoch']} per epoch)"
        return f"training {fields['model']} for {length}, run {fields['run_id']}"
    if event == "restore":
        return f"resuming at step {fields['step']} (restored in {fields['seconds']:.1f} s)"
    if event == "steps":
        return (
            f"step {fields['last_step']}/{fields['num_steps']}  loss {fields['loss']:.4f}"
            f"  accuracy {fields['accuracy']:.4f}  {fields['images_per_second']:,.0f} img/s"
        )
    if event == "evaluate":
        mark = "  best so far" if fields["is_best"] else ""
        score = f"validation loss {fields['loss']:.4f}  accuracy {fields['accuracy']:.4f}"
        other = f"  {fields['metric']} {fields['score']:.4f}" if "score" in fields else ""
        return f"epoch {fields['epoch']:.0f}  {score}{other}{mark}"
    return str(fields["message"]) if event == "notice" else ""
