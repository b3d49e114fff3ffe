"""The TensorBoard logs of a process: an observer whose thread writes the curves, so that training never waits."""

import io
import itertools
import os
import re
import socket
import sys
import threading
import time
from typing import Any, ClassVar

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.plugins.scalar.summary_v2 import scalar_pb
from tensorboard.summary.writer.record_writer import RecordWriter

from exact_resume.files import storage
from exact_resume.files.growing import GrowingFile

MAX_POINTS = 1000
"""Points of a curve per attempt, which bounds the files; TensorBoard shows no more of them."""
TRAIN, VALIDATION, EVALUATOR = "train", "validation", "evaluator"
"""Sub-folders of a run."""
_SECONDS_BETWEEN_UPLOADS = 15.0
"""An object cannot grow, so in a bucket the whole file is uploaded; locally each point is written at once."""
_EXIT_TIMEOUT_SECONDS = 60.0
"""How long an exiting process waits for its last points to be written."""
_MAX_NAME_LENGTH = 100
"""Limit of a name: with `/validation` it fits into the 128 characters that Vertex AI allows."""
_numbers = itertools.count()
"""Distinguish the files of a process."""


def run_name(label: str, model: str) -> str:
    """Return the name of a run for TensorBoard: its label, or else its model, in the characters of Vertex AI."""
    names = (re.sub("[^a-z0-9]+", "-", text.lower())[:_MAX_NAME_LENGTH].strip("-") for text in (label, model))
    return next(filter(None, names), "run")


class Board:
    """Writes the curves of a run; a failure costs the logs and never the run, whose event log has the same values."""

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
        self._is_local, self._wakes = not storage.is_object_store(directory), threading.Event()
        self._is_closing = self._has_failed = False
        self._thread = threading.Thread(target=self._write_forever, name="tensorboard", daemon=True)

    def __call__(self, event: str, **fields: Any) -> None:
        """Take the points of an event; they are written a little later."""
        if event == "start":
            self._num_steps = fields["num_steps"]
            self._thread.start()
        elif event in self._SCALARS:
            self._add_scalars(event, fields["last_step" if event == "steps" else "step"], fields)
        elif event == "exit" and self._thread.is_alive():
            self._is_closing = True
            self._wakes.set()
            self._thread.join(_EXIT_TIMEOUT_SECONDS)

    def _add_scalars(self, event: str, step: int, fields: dict[str, Any]) -> None:
        if step < min(self._next_step[event], self._num_steps):
            return
        self._next_step[event] = step + max(1, -(-self._num_steps // MAX_POINTS))
        shown = {name: fields[name] for name in self._SCALARS[event]}
        if "score" in fields:
            shown[fields["metric"]] = fields["score"]
        if event not in self._files:
            self._files[event] = EventFile(storage.join(self._directory, self._folders[event]), step)
        self._files[event].add(shown, step)
        if self._is_local:
            self._wakes.set()

    def _write_forever(self) -> None:
        is_last = False
        while not is_last:
            self._wakes.wait(_SECONDS_BETWEEN_UPLOADS)
            self._wakes.clear()
            is_last = self._is_closing
            for file in list(self._files.values()):
                try:
                    file.flush()
                except Exception as error:  # whatever fails here, the run continues
                    reason = " ".join(str(error).split())[:300]
                    if not self._has_failed:
                        self._has_failed = True
                        message = f"TensorBoard logs cannot be written ({reason}); training continues"
                        print(message, file=sys.stderr, flush=True)


class EventFile:
    """A file for the points of one attempt."""

    def __init__(self, folder: str, replaces_from: int) -> None:
        """Begin the content.

        Args:
            folder: Folder of the curve, which TensorBoard shows as a run.
            replaces_from: First step whose points of earlier attempts TensorBoard drops: they have been written without
                a checkpoint and come again.
        """
        # TensorBoard reads the files of a folder in the order of their names.
        name = f"events.out.tfevents.{time.time():.6f}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}"
        self._file = GrowingFile(storage.join(folder, name))
        self._append(Event(file_version="brain.Event:2"))
        self._append(Event(step=replaces_from, session_log=SessionLog(status=SessionLog.START)))

    def add(self, values: dict[str, float], step: int) -> None:
        """Append the values of a step, by the name of their curve; they are visible after `flush`."""
        points = [point for name, value in values.items() for point in scalar_pb(name, value).value]
        self._append(Event(step=step, summary=Summary(value=points)))

    def flush(self) -> None:
        """Write the new events.

        Raises:
            OSError: It cannot be written now; the next call tries again.
        """
        self._file.flush()

    def _append(self, event: Event) -> None:
        event.wall_time = time.time()
        record = io.BytesIO()
        RecordWriter(record).write(event.SerializeToString())
        self._file.add(record.getvalue())
