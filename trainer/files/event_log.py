"""What a replica did and when: one JSON object a line, for people, reports and whoever runs the job."""

from __future__ import annotations

import contextlib
import json
import pathlib
import time
from collections.abc import Callable, Mapping
from typing import Any

from trainer.cluster.cluster import Cluster
from trainer.files import storage
from trainer.files.event_parts import EventParts, part_name, split_name

PRIMARY = "workerpool0-0"
"""The replica that leads and writes checkpoints."""
_AT_ONCE = ("start", "notice", "exit")
"""Events that do not wait for others even where writing is slow."""


class EventLog:
    """Appends to `<checkpoint directory>/events/<replica>.jsonl`; docs/events.md tells every field."""

    def __init__(self, checkpoint_directory: str, replica: str, *, clock: Callable[[], float] = time.time) -> None:
        folder = storage.join(checkpoint_directory, "events")
        self._clock = clock
        self._log = EventParts(folder, replica) if storage.is_object_store(folder) else _LocalFile(folder, replica)

    def write(self, event: str, **fields: Any) -> None:
        """Append one event with the present time; in a bucket it arrives up to 15 seconds later."""
        line = json.dumps({"time": round(self._clock(), 6), "event": event, **fields})
        # Whoever leaves has no later chance.
        self._log.append(line, at_once=event in _AT_ONCE, wait=event == "exit")


class _LocalFile:
    """A file that grows line by line."""

    def __init__(self, folder: str, replica: str) -> None:
        self._path = pathlib.Path(folder) / part_name(replica, 0)
        self._waiting: list[str] = []
        # A killed predecessor may have left half a line; ours must not continue it.
        self._separator = "\n" if self._path.exists() and not self._path.read_bytes().endswith(b"\n") else ""

    def append(self, line: str, *, at_once: bool, wait: bool) -> None:
        del at_once, wait
        self._waiting.append(line)
        # A full disk shall not end a run for the sake of its diary: the lines wait for the next write.
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(self._separator + "\n".join(self._waiting) + "\n")
            self._waiting, self._separator = [], ""


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
    folder = storage.join(checkpoint_directory, "events")
    parts = sorted((*split_name(name), name) for name in storage.names(folder))
    events = []
    for replica, _, name in parts:
        text = storage.read_bytes(storage.join(folder, name)).decode("utf-8", "replace") if replica else ""
        for line in text.splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict) and {"time", "event"} <= event.keys():
                events.append({**event, "replica": replica})
    return sorted(events, key=lambda event: float(event["time"]))
