"""The event log of a replica: one JSON object per line, for reports and for programs that watch the job."""

import contextlib
import json
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from exact_resume.files import storage
from exact_resume.files.growing import GrowingFile
from exact_resume.workers.cluster import Cluster

PRIMARY = "workerpool0-0"
"""The replica that leads and writes checkpoints."""
PART_BYTES = 256 * 2**10
"""Size at which the log in a bucket continues in a new part, which bounds the cost of a write in a long run."""
SECONDS_BETWEEN_WRITES = 15.0
"""An object may be written at most once per second, and readers should not wait a minute."""
_EXIT_TIMEOUT_SECONDS = 60.0
"""How long an exiting process waits for its last lines to be written."""
_NUMBERS = {
    "steps": ("first_step", "last_step", "num_steps", "seconds"),
    "evaluate": ("step", "loss", "accuracy"),
    "restore": ("step",),
    "save": ("step",),
}
"""Fields that have to be numbers, by event."""
_OPTIONAL_NUMBERS = ("score", "fine_tuning_step", "loss", "accuracy")
_HUGE = 2.0**63
"""Neither times nor steps nor losses are larger; also false for NaN."""
_URGENT = ("start", "notice", "exit")
"""Events that are written without waiting for others."""


class EventLog:
    """Writes `<checkpoint folder>/events/<replica>.jsonl`; docs/events.md describes every field.

    In a bucket, parts `<replica>.0001.jsonl` and so on follow, of which a restarted process starts the next one. A
    thread writes them: training never waits for a bucket that is slow or unavailable.
    """

    def __init__(
        self, checkpoint_directory: str, replica: str, *, may_write: Callable[[], bool] = lambda: True
    ) -> None:
        """Find the end of the event log.

        Args:
            checkpoint_directory: Local or gs://; need not exist.
            replica: Names the file.
            may_write: Called before each write; if it returns False, the lines wait for a later write.
        """
        self._folder, self._replica, self._may_write = storage.join(checkpoint_directory, "events"), replica, may_write
        self._part, self._changed, self._is_urgent = 0, threading.Condition(), False
        self._has_parts = storage.is_object_store(self._folder)
        if self._has_parts:
            earlier = (split_name(name) for name in storage.names(self._folder))
            self._part = 1 + max((part for name, part in earlier if name == replica), default=-1)
        self._file = GrowingFile(self._path)
        if self._has_parts:
            threading.Thread(target=self._write_forever, name="events", daemon=True).start()
        # A killed predecessor may have left half a line, which the next line must not continue.
        if not self._has_parts and os.path.exists(self._path) and not storage.read_bytes(self._path).endswith(b"\n"):
            self._file.add(b"\n")

    def write(self, event: str, **fields: Any) -> None:
        """Append one event with the present time; in a bucket it appears up to 15 seconds later."""
        line = json.dumps({"time": round(time.time(), 6), "event": event, **fields})
        with self._changed:
            self._file.add(f"{line}\n".encode())
            self._is_urgent = self._is_urgent or event in _URGENT
            self._changed.notify_all()
            if not self._has_parts:
                self._flush()
            elif event == "exit":
                # There is no later chance to write.
                self._changed.wait_for(lambda: not self._file.has_pending, _EXIT_TIMEOUT_SECONDS)

    @property
    def _path(self) -> str:
        return storage.join(self._folder, part_name(self._replica, self._part))

    def _flush(self) -> None:
        # A full disk or an unavailable bucket must not end a run because of its event log: the lines wait.
        with contextlib.suppress(OSError):
            if self._file.has_pending and self._may_write():
                self._file.flush()

    def _write_forever(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_urgent, SECONDS_BETWEEN_WRITES)
                self._is_urgent = False
            self._flush()
            with self._changed:
                if self._file.object_size >= PART_BYTES and not self._file.has_pending:
                    self._part += 1
                    self._file = GrowingFile(self._path)
                self._changed.notify_all()


def part_name(replica: str, part: int) -> str:
    """Return the file name of a part; 0 is the first."""
    return f"{replica}.{part:04d}.jsonl" if part else f"{replica}.jsonl"


def split_name(file_name: str) -> tuple[str, int]:
    """Return replica and part of a file name; the replica is empty for any other file."""
    stem, dot, ending = file_name.rpartition(".")
    if not dot or ending != "jsonl":
        return "", 0
    replica, dot, part = stem.rpartition(".")
    return (replica, int(part)) if dot and part.isdecimal() else (stem, 0)


def replica_name(environment: Mapping[str, str], cluster: Cluster) -> str:
    """Return `<pool>-<index>` of this process, such as workerpool0-0, from CLUSTER_SPEC or as Vertex AI counts."""
    try:
        task = json.loads(environment.get("CLUSTER_SPEC") or "{}").get("task") or {}
        # The name becomes a file name.
        if task and re.fullmatch(r"[a-z0-9]{1,50}", pool := task.get("type", "workerpool0")):
            return f"{pool}-{int(task.get('index', 0))}"
    except (ValueError, AttributeError, TypeError, OverflowError, RecursionError):
        pass
    if cluster.is_chief:
        return PRIMARY
    # Without a chief, worker 0 is the first pool, and the second pool starts with worker 1.
    shift = 1 if cluster.task_type == "worker" and "chief" not in cluster.addresses else 0
    pool = {"worker": "workerpool1", "ps": "workerpool2", "evaluator": "workerpool3"}[cluster.task_type]
    return f"{pool}-{cluster.task_index - shift}"


def replica_of_rank(rank: int) -> str:
    """Return the name that Vertex AI's count gives a worker, even where a machine has several; the chief has rank 0."""
    return f"workerpool1-{rank - 1}" if rank else PRIMARY


def read(checkpoint_directory: str) -> list[dict[str, Any]]:
    """Return all events of all replicas ordered by time, without damaged lines."""
    return _read(checkpoint_directory)[0]


def read_complete(checkpoint_directory: str) -> tuple[list[dict[str, Any]], int]:
    """Return the events that have all their numbers ordered by time, and how many lines were skipped.

    A killed writer leaves half a line, and a damaged disk anything: such a line must not end a run.
    """
    events, num_skipped = _read(checkpoint_directory)
    complete = [event for event in events if set(_NUMBERS.get(event["event"], ())) <= event.keys()]
    return complete, num_skipped + len(events) - len(complete)


def steps_per_second(checkpoint_directory: str) -> float:
    """Return the speed of the chief's training over all its starts, or 0 if it has done no step."""
    events, _ = read_complete(checkpoint_directory)
    found = [event for event in events if event["event"] == "steps" and event["replica"] == PRIMARY]
    num_steps = sum(event["last_step"] - event["first_step"] + 1 for event in found)
    return float(num_steps / max(sum(event["seconds"] for event in found), 1e-9))


def _read(checkpoint_directory: str) -> tuple[list[dict[str, Any]], int]:
    folder = storage.join(checkpoint_directory, "events")
    parts = sorted((*split_name(name), name) for name in storage.names(folder))
    events, num_skipped = [], 0
    for replica, _, name in parts:
        text = storage.read_bytes(storage.join(folder, name)).decode("utf-8", "replace") if replica else ""
        for line in text.split("\n"):
            if event := _parse(line):
                events.append({**event, "replica": replica})
            elif line.strip():
                num_skipped += 1
    return sorted(events, key=lambda event: float(event["time"])), num_skipped


def _parse(line: str) -> dict[str, Any] | None:
    """Return the event of a line; None if it is not an event, or a number in it is not a number."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or not isinstance(event.get("event"), str) or not _is_number(event.get("time")):
        return None
    numbers = (*_NUMBERS.get(event["event"], ()), *_OPTIONAL_NUMBERS)
    return event if all(_is_number(event[name]) for name in numbers if name in event) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _HUGE
