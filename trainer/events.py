"""What a replica did and when: one JSON object a line, for people, reports and whoever runs the job."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from etils import epath

from trainer import storage
from trainer.cluster import Cluster

PRIMARY = "workerpool0-0"
"""The replica that leads and writes checkpoints."""
_AT_ONCE = ("start", "notice", "exit")
"""Events that do not wait for others even where writing is slow."""


class EventLog:
    """Appends to `<checkpoint directory>/events/<replica>.jsonl`; docs/events.md tells every field."""

    def __init__(self, checkpoint_directory: str, replica: str, *, clock: Callable[[], float] = time.time) -> None:
        self._path = epath.Path(checkpoint_directory) / "events" / f"{replica}.jsonl"
        self._clock = clock
        self._waiting: list[str] = []
        self._written_at = 0.0
        # Appending to an object writes it anew, and an object may be written once a second at most.
        self._seconds_between_writes = 15.0 if storage.is_object_store(self._path) else 0.0
        # A killed predecessor may have left half a line; ours must not continue it.
        self._separator = "\n" if self._path.exists() and not self._path.read_bytes().endswith(b"\n") else ""

    def write(self, event: str, **fields: Any) -> None:
        """Append one event with the present time; on an object store it may wait for up to 15 seconds."""
        now = self._clock()
        self._waiting.append(json.dumps({"time": round(now, 6), "event": event, **fields}))
        if event in _AT_ONCE or now - self._written_at >= self._seconds_between_writes:
            # A full disk shall not end a run for the sake of its diary: the lines wait for the next write.
            with contextlib.suppress(OSError):
                storage.append_line(self._path, self._separator + "\n".join(self._waiting))
                self._waiting, self._separator, self._written_at = [], "", now


def replica_name(environment: Mapping[str, str], cluster: Cluster) -> str:
    """`<pool>-<index>` of this process, such as workerpool0-0: from CLUSTER_SPEC, or as Vertex AI numbers the pools."""
    try:
        task = json.loads(environment.get("CLUSTER_SPEC") or "{}").get("task") or {}
        if task:
            return f"{task.get('type', 'workerpool0')}-{int(task.get('index', 0))}"
    except (ValueError, AttributeError, TypeError):
        pass
    if cluster.is_chief:
        return PRIMARY
    # Without a chief, worker 0 is the first pool, and the second begins with worker 1.
    shift = 1 if cluster.task_type == "worker" and "chief" not in cluster.addresses else 0
    pool = {"worker": "workerpool1", "ps": "workerpool2", "evaluator": "workerpool3"}[cluster.task_type]
    return f"{pool}-{cluster.task_index - shift}"


def read(checkpoint_directory: str) -> list[dict[str, Any]]:
    """All events of all replicas in order of time; lines that are cut short (a killed writer) are left out."""
    folder = epath.Path(checkpoint_directory) / "events"
    if not folder.exists():
        return []
    events = []
    for path in sorted(folder.iterdir(), key=os.fspath):
        for line in path.read_text().splitlines() if path.name.endswith(".jsonl") else ():
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict) and {"time", "event"} <= event.keys():
                events.append({**event, "replica": path.name.removesuffix(".jsonl")})
    return sorted(events, key=lambda event: float(event["time"]))
