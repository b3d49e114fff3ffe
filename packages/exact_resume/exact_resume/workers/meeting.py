"""The workers meet before they train: each shows the chief what it will compute, and all leave if anything differs.

The chief listens at its own address of TF_CONFIG, which TensorFlow takes over afterwards. A worker sends one line of
JSON (its task and its fields). It gets lines with those who are missing, and in the end the difference or none.
"""

import contextlib
import json
import selectors
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any

from exact_resume.errors import InputError
from exact_resume.workers.cluster import Cluster
from exact_resume.workers.deadline import POLL_SECONDS, Deadline

_MAX_BYTES = 2**20
_MAX_NAMED = 3
_PAUSE_SECONDS = 0.5
"""Between two attempts to reach the chief."""
_CLOSING_SECONDS = 5.0
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


def difference(
    fields_of: Mapping[str, Mapping[str, Any]], way_on: str = "start all with the same flags, data and code"
) -> str:
    """Return a sentence about the fields that are not equal on all tasks; empty if there are none.

    Args:
        fields_of: Task -> fields.
        way_on: What to do, at the end of the sentence.
    """
    found = []
    for name in sorted({name for fields in fields_of.values() for name in fields}):
        tasks_of: dict[str, list[str]] = {}
        for task, fields in fields_of.items():
            tasks_of.setdefault(json.dumps(fields.get(name)), []).append(task)
        if len(tasks_of) > 1:
            found.append(f"{name} is " + " and ".join(f"{text} on {_some(on)}" for text, on in tasks_of.items()))
    if not found:
        return ""
    return f"the workers differ: {'; '.join(found[:_MAX_NAMED])}; {way_on}"


def _some(tasks: Sequence[str]) -> str:
    more = f" and {len(tasks) - _MAX_NAMED} more" if len(tasks) > _MAX_NAMED else ""
    return ", ".join(tasks[:_MAX_NAMED]) + more


def _receive_all(own: dict[str, Any], tasks: Mapping[str, str], deadline: Deadline) -> str:
    """Wait for all workers as the chief; return the difference, which they get, too."""
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        listener = stack.enter_context(_listen(tasks[own["task"]], deadline))
        selector.register(listener, selectors.EVENT_READ)
        texts: dict[socket.socket, bytes] = {}
        stack.callback(_close, texts)
        sent: list[str] | None = None
        while True:
            fields_of = {own["task"]: own["fields"], **dict(filter(None, map(_parse, texts.values())))}
            missing = [f"{task} ({tasks[task]})" for task in tasks if task not in fields_of]
            if missing != sent:
                _send(texts, {"missing": missing})
                sent = missing
            if not missing:
                break
            deadline.check(missing)
            for key, _ in selector.select(POLL_SECONDS):
                _receive(key.fileobj, listener, selector, texts)
        verdict = difference(fields_of)
        _send(texts, {"verdict": verdict})
        _wait_until_closed(texts)
    return verdict


def _close(guests: Mapping[socket.socket, bytes]) -> None:
    for guest in guests:
        guest.close()


def _receive(ready: Any, listener: socket.socket, selector: selectors.BaseSelector, texts: dict[Any, bytes]) -> None:
    """Let a guest in, or read what it has sent."""
    if ready is listener:
        guest, _ = listener.accept()
        guest.setblocking(False)
        selector.register(guest, selectors.EVENT_READ)
        texts[guest] = b""
    elif not _read_into(texts, ready):
        selector.unregister(ready)
        ready.close()


def _read_into(texts: dict[socket.socket, bytes], guest: Any) -> bool:
    """Read what a guest has sent; return whether it is still there, and forget it if it is not."""
    try:
        piece = guest.recv(65536)
    except BlockingIOError:
        return True
    except OSError:
        piece = b""
    if not piece or len(texts[guest]) + len(piece) > _MAX_BYTES:
        del texts[guest]
        return False
    texts[guest] += piece
    return True


def _parse(text: bytes) -> tuple[str, dict[str, Any]] | None:
    """Return task and fields of a worker; None if the line is not complete, or from another program."""
    line, end, _ = text.partition(b"\n")
    try:
        shown = json.loads(line) if end else None
    except (ValueError, RecursionError):
        return None
    if isinstance(shown, dict) and isinstance(shown.get("task"), str) and isinstance(shown.get("fields"), dict):
        return shown["task"], shown["fields"]
    return None


def _send(guests: Mapping[socket.socket, bytes], message: dict[str, Any]) -> None:
    for guest, text in guests.items():
        # One that has gone is noticed when it is read.
        if _parse(text):
            with contextlib.suppress(OSError):
                guest.sendall(json.dumps(message).encode() + b"\n")


def _wait_until_closed(guests: Mapping[socket.socket, bytes]) -> None:
    """Let the workers close first: the side that closes first keeps the port busy for a minute."""
    deadline = time.monotonic() + _CLOSING_SECONDS
    for guest, text in guests.items():
        with guest, contextlib.suppress(OSError):
            while _parse(text) and (left := deadline - time.monotonic()) > 0:
                guest.settimeout(left)
                if not guest.recv(65536):
                    break


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
    """Show the fields to the chief; return its verdict."""
    chief, address = next(iter(tasks.items()))
    host, _, port = address.rpartition(":")
    while True:
        with (
            contextlib.suppress(OSError),
            socket.create_connection((host, int(port)), timeout=POLL_SECONDS) as connection,
        ):
            connection.sendall(json.dumps(own).encode() + b"\n")
            if (verdict := _await_verdict(connection, f"{chief} ({address})", deadline)) is not None:
                return verdict
        until = time.monotonic() + _PAUSE_SECONDS
        while time.monotonic() < until:
            deadline.check([f"{chief} ({address})"])
            time.sleep(POLL_SECONDS)


def _await_verdict(chief: socket.socket, name: str, deadline: Deadline) -> str | None:
    """Return the verdict; None if the chief is lost, or if another program answers, such as TensorFlow."""
    text, missing = b"", [name]
    while len(text) <= _MAX_BYTES:
        deadline.check(missing)
        try:
            if not (piece := chief.recv(65536)):
                return None
        except TimeoutError:
            continue
        text += piece
        while b"\n" in text:
            line, _, text = text.partition(b"\n")
            try:
                message = json.loads(line)
                if "verdict" in message:
                    return str(message["verdict"])
                missing = [str(each) for each in message["missing"]] or [name]
            except (ValueError, KeyError, TypeError):
                return None
    return None
