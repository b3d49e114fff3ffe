"""TensorBoard's event files: one that grows with an attempt at a run, and those that are written once."""

import io
import itertools
import os
import socket
import time

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

from exact_resume.files import storage

SECONDS_BETWEEN_UPLOADS = 15.0
"""An object cannot grow, so in a bucket the whole file is uploaded."""
_FORMAT = "brain.Event:2"
_numbers = itertools.count()
"""Distinguish the files of a process."""


class EventFile:
    """A file for the points of one attempt. Its content stays in memory, so that a failed write can be repeated."""

    def __init__(self, folder: str, replaces_from: int) -> None:
        """Begin the content.

        Args:
            folder: Folder of the curve, which TensorBoard shows as a run.
            replaces_from: First step whose points of earlier attempts TensorBoard drops: they have been written without
                a checkpoint and come again.
        """
        # TensorBoard reads the files of a folder in the order of their names.
        name = f"events.out.tfevents.{time.time():.6f}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}"
        self._path = storage.join(folder, name)
        self._content, self._num_written, self._uploaded_at = io.BytesIO(), 0, 0.0
        self._records = RecordWriter(self._content)
        start = SessionLog(status=SessionLog.START)
        self._append(Event(wall_time=time.time(), file_version=_FORMAT))
        self._append(Event(wall_time=time.time(), step=replaces_from, session_log=start))

    def add(self, summary: Summary, step: int) -> None:
        """Append the values of a step; they are visible after `flush`."""
        self._append(Event(wall_time=time.time(), step=step, summary=summary))

    def flush(self, *, now: bool) -> None:
        """Write what is new.

        Args:
            now: In a bucket, do not wait until the last upload is 15 seconds ago.

        Raises:
            OSError: It cannot be written now; the next call tries again.
        """
        size, moment = self._content.tell(), time.monotonic()
        if size == self._num_written:
            return
        if not storage.is_object_store(self._path):
            self._write_locally(self._content.getvalue()[self._num_written :])
        elif now or moment - self._uploaded_at >= SECONDS_BETWEEN_UPLOADS:
            self._uploaded_at = moment
            storage.write_bytes(self._path, self._content.getvalue())
        else:
            return
        self._num_written = size

    def _append(self, event: Event) -> None:
        self._records.write(event.SerializeToString())

    def _write_locally(self, data: bytes) -> None:
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        # Not replaced as a whole: TensorBoard keeps the file open and reads on.
        with open(self._path, "ab", buffering=0) as file:
            try:
                if file.write(data) < len(data):
                    raise OSError(f"{self._path}: no space left")
            except OSError:
                # A torn record would hide all that follows it.
                file.truncate(self._num_written)
                raise


def write_once(folder: str, name: str, summary: Summary, step: int) -> None:
    """Write a file of its own, as a whole, for values that no restart writes again.

    Args:
        folder: Folder of the run.
        name: Distinguishes the file from others in the folder.
        summary: The values.
        step: Their step.
    """
    # Before the files of all attempts.
    path = storage.join(folder, f"events.out.tfevents.0000000000.{name}")
    if storage.exists(path):
        return
    buffer, now = io.BytesIO(), time.time()
    records = RecordWriter(buffer)
    for event in (Event(wall_time=now, file_version=_FORMAT), Event(wall_time=now, step=step, summary=summary)):
        records.write(event.SerializeToString())
    storage.write_bytes(path, buffer.getvalue())
