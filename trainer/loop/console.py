"""Show a training run to the user: a progress bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable
from typing import Any

from exact_resume.events.observers import Observer

_SECONDS_BETWEEN_LINES = 10.0
"""Shortest time between two printed lines about training steps."""


def show(num_steps: int) -> Observer:
    """Return a progress bar on a terminal, plain lines elsewhere."""
    return ProgressBar(num_steps) if sys.stderr.isatty() else PlainLines()


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


class ProgressBar:
    """A rich progress bar with images per second and the remaining time; the other events are printed above it."""

    def __init__(self, num_steps: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("training"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("steps  {task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._progress.add_task("training", total=num_steps, rate="")

    def __call__(self, event: str, **fields: Any) -> None:
        """Advance the bar or print a line above it."""
        if event == "start":
            self._progress.start()
        if event == "steps":
            rate = f"{fields['images_per_second']:,.0f} img/s  loss {fields['loss']:.4f}"
            self._progress.update(self._task, completed=fields["last_step"], rate=rate)
        elif line := _describe(event, fields):
            self._progress.console.print(line, markup=False, highlight=False)
        if event == "restore":
            self._progress.update(self._task, completed=fields["step"])
        if event == "exit":
            self._progress.stop()


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
