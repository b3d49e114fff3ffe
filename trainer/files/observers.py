"""Who watches a run: a person at a terminal, a log, TensorBoard. Each takes the events of docs/events.md."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from trainer.files import storage

Observer = Callable[..., None]
"""Called as observer(event, **fields); the events and their fields are those of docs/events.md."""
_SECONDS_BETWEEN_LINES = 10.0
"""A log gets a line on the steps at most so often."""


def all_of(observers: Sequence[Observer]) -> Observer:
    """One observer that tells each of several."""

    def observe(event: str, **fields: Any) -> None:
        for observer in observers:
            observer(event, **fields)

    return observe


def tensorboard(directory: str) -> Observer:
    """Scalars for TensorBoard; nothing at all if `directory` is empty."""
    if not directory:
        return lambda event, **fields: None
    import tensorflow as tf

    # TensorFlow makes the folder by a function that never returns where the bucket does not exist.
    storage.make_directory(directory)
    writers: dict[str, Any] = {}

    def writer(name: str) -> Any:
        # Made when there is something to write: it starts TensorFlow's runtime, which several workers configure before.
        if name not in writers:
            writers[name] = tf.summary.create_file_writer(directory.rstrip("/") + "/" + name)
        return writers[name]

    def write(event: str, fields: dict[str, Any]) -> None:
        names = {"steps": ("loss", "accuracy", "learning_rate", "images_per_second"), "evaluate": ("loss", "accuracy")}
        if event in names:
            step = fields["last_step"] if event == "steps" else fields["step"]
            with writer("train" if event == "steps" else "validation").as_default(step=step):
                for name in names[event]:
                    tf.summary.scalar(name, fields[name])
        if event in ("evaluate", "exit"):
            for each in writers.values():
                each.flush()

    def observe(event: str, **fields: Any) -> None:
        try:
            write(event, fields)
        except tf.errors.OpError as error:
            # Curves are not worth a run; what is missing there is in the events.
            print(f"TensorBoard's logs: {' '.join(error.message.split())[:300]}; going on", file=sys.stderr)

    return observe


def console(num_steps: int) -> Observer:
    """A progress bar on a terminal, plain lines elsewhere."""
    return ProgressBar(num_steps) if sys.stderr.isatty() else PlainLines()


class PlainLines:
    """One line an event to standard output."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last_steps_line = -_SECONDS_BETWEEN_LINES

    def __call__(self, event: str, **fields: Any) -> None:
        """Print the event, if a person would want to read it."""
        if event == "steps":
            if self._clock() - self._last_steps_line < _SECONDS_BETWEEN_LINES:
                return
            self._last_steps_line = self._clock()
        if line := describe(event, fields):
            print(line, flush=True)


class ProgressBar:
    """A rich progress bar with images a second and the time left; the other events go above it."""

    def __init__(self, num_steps: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("training"), BarColumn(), MofNCompleteColumn(), TextColumn("steps  {task.fields[rate]}"),
            TimeRemainingColumn(), console=Console(stderr=True),
        )  # fmt: skip
        self._task = self._progress.add_task("training", total=num_steps, rate="")

    def __call__(self, event: str, **fields: Any) -> None:
        """Move the bar or print a line above it."""
        if event == "start":
            self._progress.start()
        if event == "steps":
            rate = f"{fields['images_per_second']:,.0f} img/s  loss {fields['loss']:.4f}"
            self._progress.update(self._task, completed=fields["last_step"], rate=rate)
        elif line := describe(event, fields):
            self._progress.console.print(line, markup=False, highlight=False)
        if event == "restore":
            self._progress.update(self._task, completed=fields["step"])
        if event == "exit":
            self._progress.stop()


def describe(event: str, fields: dict[str, Any]) -> str:
    """The event in words; empty for those that are only of use to programs."""
    if event == "start":
        length = f"{fields['num_steps']} steps ({fields['steps_per_epoch']} an epoch)"
        return f"training {fields['model']} for {length}, run {fields['run_id']}"
    if event == "restore":
        return f"going on at step {fields['step']} (restored in {fields['seconds']:.1f} s)"
    if event == "steps":
        return (
            f"step {fields['last_step']}/{fields['num_steps']}  loss {fields['loss']:.4f}"
            f"  accuracy {fields['accuracy']:.4f}  {fields['images_per_second']:,.0f} img/s"
        )
    if event == "evaluate":
        mark = "  best so far" if fields["is_best"] else ""
        score = f"validation loss {fields['loss']:.4f}  accuracy {fields['accuracy']:.4f}"
        return f"epoch {fields['epoch']:.0f}  {score}{mark}"
    return str(fields["message"]) if event == "notice" else ""
