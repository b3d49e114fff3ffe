"""The workers meet before they train: each shows the chief what it will compute, and all leave if anything differs.

The chief listens at its own address of TF_CONFIG, which TensorFlow takes over afterwards. A worker sends one line of
JSON (its task and its fields), again and again. It gets a line with those who are missing, and in the end the
difference or none.
"""

import contextlib
import json
import math
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any

from exact_resume.errors import InputError
from exact_resume.workers.cluster import Cluster
from exact_resume.workers.deadline import POLL_SECONDS, Deadline

_MAX_BYTES = 2**20
_MAX_NAMED = 3
_ANSWER_SECONDS = 1.0
_SILENT_SECONDS = 2.0
"""A worker that has not been heard for so long is missing again."""
_CLOSING_SECONDS = 5.0
_FROM_ANOTHER_PROGRAM = (OSError, ValueError, LookupError, TypeError, RecursionError)
"""Errors of a connection that is lost, or whose other side is no worker, for example TensorFlow."""
_LOOPBACK = ("127.0.0.1", "localhost")


def meet(cluster: Cluster, fields: Mapping[str, Any], deadline: Deadline) -> None:
    """Return once all workers have shown equal fields.

    Args:
        cluster: The machines, and this process's task.
        fields: JSON values by name; all must be equal on all workers.
        deadline: How long to wait.

    Raises:
        InputError: A field differs; all workers raise it with the same text.
        TimedOut: Not all have come.
    """
    own = {"task": f"{cluster.task_type} {cluster.task_index}", "fields": json.loads(json.dumps(fields))}
    tasks = {
        f"{kind} {index}": address
        for kind in ("chief", "worker")
        for index, address in enumerate(cluster.addresses.get(kind, ()))
    }
    verdict = _receive_all(own, tasks, deadline) if cluster.is_chief else _show(own, tasks, deadline)
    if verdict:
        raise InputError(verdict)


def difference(fields_of: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a sentence about the fields that are not equal on all tasks; empty if there are none."""
    found = []
    for name in sorted({name for fields in fields_of.values() for name in fields}):
        tasks_of: dict[str, list[str]] = {}
        for task, fields in fields_of.items():
            tasks_of.setdefault(json.dumps(fields.get(name)), []).append(task)
        if len(tasks_of) > 1:
            found.append(f"{name} is " + " and ".join(f"{text} on {_some(on)}" for text, on in tasks_of.items()))
    if not found:
        return ""
    return f"the workers differ: {'; '.join(found[:_MAX_NAMED])}; start all with the same flags, data and code"


def _some(tasks: Sequence[str]) -> str:
    more = f" and {len(tasks) - _MAX_NAMED} more" if len(tasks) > _MAX_NAMED else ""
    return ", ".join(tasks[:_MAX_NAMED]) + more


def _receive_all(own: dict[str, Any], tasks: Mapping[str, str], deadline: Deadline) -> str:
    """Wait for all workers as the chief; return the difference, which they get, too."""
    fields_of, others = {own["task"]: own["fields"]}, {*tasks} - {own["task"]}
    heard_at, last_joined_at = dict[str, float](), 0.0

    def missing() -> list[str]:
        # All are heard again after the last one has joined, so that none of them has died in the meantime.
        since = max(last_joined_at, time.monotonic() - _SILENT_SECONDS)
        return [f"{task} ({address})" for task, address in tasks.items() if heard_at.get(task, 0.0) <= since]

    with _listen(tasks[own["task"]], deadline) as listener:
        listener.settimeout(POLL_SECONDS)
        while True:
            heard_at[own["task"]] = math.inf
            if not (waits_for := missing()):
                break
            deadline.check(waits_for)
            if (shown := _answer(listener, {"missing": waits_for})) and shown[0] in others:
                task, now = shown[0], time.monotonic()
                if now - heard_at.get(task, 0.0) > _SILENT_SECONDS:
                    last_joined_at = now
                fields_of[task], heard_at[task] = shown[1], now
        verdict, until = difference(fields_of), time.monotonic() + _CLOSING_SECONDS
        while others and time.monotonic() < until:
            if shown := _answer(listener, {"verdict": verdict}):
                others.discard(shown[0])
    return verdict


def _answer(listener: socket.socket, message: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Answer the next worker; return its task and fields, None if none comes, or another program."""
    with contextlib.suppress(*_FROM_ANOTHER_PROGRAM):
        guest, _ = listener.accept()
        with guest:
            guest.settimeout(_ANSWER_SECONDS)
            shown = json.loads(guest.makefile("rb").readline(_MAX_BYTES))
            found = str(shown["task"]), dict(shown["fields"])
            guest.sendall(json.dumps(message).encode() + b"\n")
            # The worker closes first: the side that closes first keeps the port busy for a minute.
            guest.recv(1)
            return found
    return None


def _listen(address: str, deadline: Deadline) -> socket.socket:
    host, _, port = address.rpartition(":")
    while True:
        try:
            return socket.create_server((host if host in _LOOPBACK else "", int(port)))
        except OSError as error:
            # A predecessor on this machine may still be leaving.
            deadline.check([f"its own address {address} ({error.strerror})"])
            time.sleep(POLL_SECONDS)


def _show(own: dict[str, Any], tasks: Mapping[str, str], deadline: Deadline) -> str:
    """Show the fields to the chief until it returns its verdict."""
    chief, address = next(iter(tasks.items()))
    host, _, port = address.rpartition(":")
    missing = [f"{chief} ({address})"]
    while True:
        deadline.check(missing)
        missing = [f"{chief} ({address})"]
        with (
            contextlib.suppress(*_FROM_ANOTHER_PROGRAM),
            socket.create_connection((host, int(port)), timeout=_ANSWER_SECONDS) as connection,
        ):
            connection.sendall(json.dumps(own).encode() + b"\n")
            message = json.loads(connection.makefile("rb").readline(_MAX_BYTES))
            if "verdict" in message:
                return str(message["verdict"])
            missing = [str(each) for each in message["missing"]]
        time.sleep(POLL_SECONDS)
