"""The TensorBoard logs of a process: an observer that writes them in a thread, so that training never waits."""

import contextlib
import functools
import queue
import re
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.scalar.summary_v2 import scalar_pb

from exact_resume.files import storage
from trainer.loop.board.event_files import SECONDS_BETWEEN_UPLOADS, EventFile, write_once

MAX_POINTS = 1000
"""Points of a curve per attempt, which bounds the files; TensorBoard shows no more of them."""
TRAIN, VALIDATION, EVALUATOR = "train", "validation", "evaluator"
"""Sub-folders of a run."""
_MAX_WAITING = 1000
"""Writes that wait for a slow disk or bucket; more are dropped."""
_EXIT_TIMEOUT_SECONDS = 60.0
"""How long an exiting process waits for its last points to be written."""
_MAX_NAME_LENGTH = 100
"""With `/validation` it fits into the 128 characters that Vertex AI allows."""


def run_name(label: str, model: str) -> str:
    """Return the name of a run for TensorBoard: its label, or else its model, in the characters of Vertex AI."""
    names = (re.sub("[^a-z0-9]+", "-", text.lower())[:_MAX_NAME_LENGTH].strip("-") for text in (label, model))
    return next(filter(None, names), "run")


class NoBoard:
    """Writes nothing: a process whose curves another one writes."""

    def __call__(self, event: str, **fields: Any) -> None:
        """Take no notice of an event."""

    def folder(self, name: str) -> str:
        """Return the path of a sub-folder, such as `train`; empty if nothing is written."""
        del name
        return ""

    def attempt(self, write: Callable[[], None]) -> None:
        """Take no notice of something to do now."""

    def submit(self, write: Callable[[], None]) -> None:
        """Take no notice of something to write."""

    def add_once(self, folder: str, name: str, make: Callable[[], Summary], *, step: int) -> None:
        """Take no notice of values."""

    def add(self, folder: str, make: Callable[[], Summary], *, step: int) -> None:
        """Take no notice of values."""


class Board(NoBoard):
    """Writes the logs of a run; a failure costs the logs and never the run, whose event log has the same values."""

    _SCALARS: ClassVar = {
        "steps": ("loss", "accuracy", "learning_rate", "images_per_second"),
        "evaluate": ("loss", "accuracy"),
    }

    def __init__(self, directory: str, *, evaluations: str = VALIDATION) -> None:
        """Write into a folder, from the event `start` on.

        Args:
            directory: Folder of the run; each of its sub-folders is a run for TensorBoard.
            evaluations: Sub-folder for the events `evaluate`.
        """
        self._directory = directory
        self._folders = {"steps": TRAIN, "evaluate": evaluations}
        self._files: dict[str, EventFile] = {}
        self._num_steps, self._next_step = 0, dict.fromkeys(self._SCALARS, 0)
        self._waiting: queue.Queue[Callable[[], None]] = queue.Queue(_MAX_WAITING)
        self._is_closing, self._has_failed = threading.Event(), False
        self._thread = threading.Thread(target=self._write_forever, name="tensorboard", daemon=True)

    def __call__(self, event: str, **fields: Any) -> None:
        """Write the points of an event."""
        if event == "start":
            self._num_steps = fields["num_steps"]
            self._thread.start()
        elif event in self._SCALARS:
            self._add_scalars(event, fields["last_step" if event == "steps" else "step"], fields)
        elif event == "exit" and self._thread.is_alive():
            self._is_closing.set()
            self.submit(lambda: None)
            self._thread.join(_EXIT_TIMEOUT_SECONDS)

    def folder(self, name: str) -> str:
        """Return the path of a sub-folder, such as `train`."""
        return storage.join(self._directory, name)

    def submit(self, write: Callable[[], None]) -> None:
        """Let the thread call a function that writes something; its failure is reported once per run."""
        try:
            self._waiting.put_nowait(write)
        except queue.Full:
            self._report("the disk or the bucket does not keep up")

    def add_once(self, folder: str, name: str, make: Callable[[], Summary], *, step: int) -> None:
        """Write values that no restart writes again.

        Args:
            folder: Sub-folder, such as `train`.
            name: Name of the values, unique in the sub-folder.
            make: Returns the values; called by the thread.
            step: Their step.
        """
        self.submit(lambda: write_once(self.folder(folder), name, make(), step))

    def add(self, folder: str, make: Callable[[], Summary], *, step: int) -> None:
        """Write values of a step beside the curves; arguments as for `add_once`."""
        self.submit(lambda: self._write(folder, make(), step, replaces_from=step + 1))

    def _add_scalars(self, event: str, step: int, fields: Mapping[str, Any]) -> None:
        if step < min(self._next_step[event], self._num_steps):
            return
        self._next_step[event] = step + max(1, -(-self._num_steps // MAX_POINTS))
        shown = {name: fields[name] for name in self._SCALARS[event]}
        if "score" in fields:
            shown[fields["metric"]] = fields["score"]
        values = [value for name, number in shown.items() for value in scalar_pb(name, number).value]
        self.submit(lambda: self._write(self._folders[event], Summary(value=values), step, replaces_from=step))

    def _write_forever(self) -> None:
        while not (self._is_closing.is_set() and self._waiting.empty()):
            with contextlib.suppress(queue.Empty):
                self.attempt(self._waiting.get(timeout=SECONDS_BETWEEN_UPLOADS))
            for file in self._files.values():
                self.attempt(functools.partial(file.flush, now=False))
        for file in self._files.values():
            self.attempt(functools.partial(file.flush, now=True))

    def attempt(self, write: Callable[[], None]) -> None:
        """Call a function now; its failure is reported once per run."""
        try:
            write()
        except Exception as error:  # whatever fails here, the run continues
            self._report(str(error))

    def _write(self, folder: str, summary: Summary, step: int, *, replaces_from: int) -> None:
        if folder not in self._files:
            self._files[folder] = EventFile(self.folder(folder), replaces_from)
        self._files[folder].add(summary, step)

    def _report(self, reason: str) -> None:
        if not self._has_failed:
            self._has_failed = True
            text = " ".join(reason.split())[:300]
            print(f"TensorBoard logs cannot be written ({text}); training continues", file=sys.stderr, flush=True)
