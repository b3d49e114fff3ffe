"""The workers of a run: how they meet without a service, exchange a few values, and notice that one is lost.

The chief (worker 0) listens where `exact_resume.workers.meeting` says. Both ends of a connection show that they know
the token of the place, so neither a file of a former start nor another program at the port is mistaken for a worker.
Messages are lines of JSON; nothing is pickled or encrypted.

A thread reads each connection. A worker is lost if its connection ends or is silent for too long, even while this
process hangs in a collective operation; then the process leaves at once.
"""

import contextlib
import hmac
import json
import os
import queue
import secrets
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, BinaryIO

from exact_resume.errors import InputError, RunError
from exact_resume.workers.deadline import POLL_SECONDS, Deadline
from exact_resume.workers.meeting import Rendezvous
from exact_resume.workers.place import Place

_TARGET_SECONDS = 2.0
"""Aimed duration of a block of steps. A stop request and a save wait for one block at most, so it must be well below
five seconds."""
_MAX_GROWTH = 4
"""Largest factor from one block's number of steps to the next, because the first ones include tracing and warm-up."""
_MAX_BYTES = 4 * 2**20
"""Limit of a line; the longest lines are the identity of a run and the states of random generators."""
_MAX_GREETING_BYTES = 1024
_GREETING_SECONDS = 5.0
"""Longest wait for a part of a greeting."""
_PAUSE_SECONDS = 0.5
"""Pause between two attempts to reach the chief."""
_NEWS_SECONDS = 1.0
"""How long a worker that fails listens whether a lost worker is the cause: the frameworks notice it at the same time.
The others wait twice as long for their own failure: one that comes from the program is the same on all."""
_CLOSING_SECONDS = 5.0
_BEAT = b"{}\n"
_Decide = Callable[[list[Any]], Any]


class Pace:
    """Decides how many steps fit into a block, from the durations of the blocks so far."""

    def __init__(self) -> None:
        self.num_steps = 1
        """Number of steps for the next block."""

    def record(self, num_steps: int, seconds: float) -> None:
        """Learn from a block: its number of steps and its duration."""
        fitting = int(_TARGET_SECONDS * num_steps / max(seconds, 1e-6))
        self.num_steps = max(1, min(fitting, num_steps * _MAX_GROWTH))


class OneWorker:
    """The team of a worker that is alone."""

    def exchange(self, own: Any, decide: _Decide, *, is_last: bool = False) -> Any:
        """Return the decision."""
        del is_last
        return decide([own])

    def fail(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class SeveralWorkers:
    """The team of a worker that is not alone. All workers must make the same exchanges in the same order."""

    def __init__(
        self,
        place: Place,
        rendezvous: Rendezvous,
        *,
        timeout_seconds: float,
        deadline: Deadline,
        leave: Callable[[str], object],
    ) -> None:
        """Meet the other workers.

        Args:
            place: Place of this worker.
            rendezvous: Where they meet.
            timeout_seconds: A worker that is silent for this long is lost.
            deadline: How long to wait for all to come, and for the first exchange.
            leave: Called once in a thread, with the reason, if a worker is lost. It ends the process.

        Raises:
            TimedOut: Not all have come in time, or a stop was requested.
        """
        self._place, self._rendezvous = place, rendezvous
        self._timeout_seconds, self._leave = timeout_seconds, leave
        self._peers: dict[int, _Peer] = {}
        self._lock, self._is_complete = threading.Lock(), False
        self._is_failing, self._is_over = threading.Event(), threading.Event()
        self._missing_names: list[str] = []
        self._check: Callable[[], object] = lambda: deadline.check(self._missing_names or ["the other workers"])
        threading.Thread(target=self._beat_forever, name="beat", daemon=True).start()
        try:
            if place.rank:
                self._join(deadline)
            else:
                self._gather(deadline)
        except BaseException:
            self.close()
            raise

    def exchange(self, own: Any, decide: _Decide, *, is_last: bool = False) -> Any:
        """Return on all workers what the chief decides.

        Args:
            own: This worker's value; JSON.
            decide: Called on the chief, with the values of all workers in order of their rank; returns JSON.
            is_last: Whether workers may leave afterwards in any order.

        Raises:
            InputError: `decide` raised it; then this was the last exchange. All workers raise it with the same text.
            RunError: Likewise.
        """
        if self._place.rank:
            self._peers[0].send({"value": own})
            answer = self._receive(self._peers[0])
        else:
            values = [own, *(self._receive(self._peers[rank])["value"] for rank in sorted(self._peers))]
            try:
                answer = {"value": decide(values), "is_last": is_last}
            except (InputError, RunError) as error:
                answer = {"error": str(error), "is_input": isinstance(error, InputError), "is_last": True}
            if answer["is_last"]:
                self._is_over.set()
            for peer in self._peers.values():
                peer.send(answer)
        self._check = lambda: None
        if message := answer.get("error"):
            raise (InputError if answer["is_input"] else RunError)(message)
        return answer["value"]

    def fail(self) -> None:
        """Let the other workers know that this one leaves by an exception, unless the last exchange was made.

        If a lost worker is the cause of the exception, this process leaves as the others do.
        """
        if not self._is_over.is_set() and not self._is_failing.is_set():
            self._is_failing.set()
            for peer in self._peers.values():
                peer.send({"has_failed": True})
            time.sleep(_NEWS_SECONDS)
            # From here on, the others leave because of this one.
            self._is_over.set()

    def close(self) -> None:
        """Close the connections. Before the last exchange, the other workers then count this one as lost."""
        is_waiting = self._is_over.is_set() and not self._is_failing.is_set() and not self._place.rank
        self._is_failing.set()
        self._is_over.set()
        until = time.monotonic() + _CLOSING_SECONDS
        for peer in list(self._peers.values()):
            if is_waiting:
                # Closing with unread beats would reset the connection, and what the peer has not read is lost.
                peer.thread.join(max(0.0, until - time.monotonic()))
            peer.close()

    def _gather(self, deadline: Deadline) -> None:
        """Wait for all workers as the chief."""
        with self._rendezvous.listening(deadline) as (listener, token):
            listener.settimeout(POLL_SECONDS)
            while not self._is_complete:
                names = [self._rendezvous.describe(rank) for rank in self._missing]
                if names != self._missing_names:
                    self._name_missing(names)
                deadline.check(names)
                with contextlib.suppress(OSError):
                    guest, _ = listener.accept()
                    # In a thread, so that one that is silent delays no other.
                    threading.Thread(target=self._admit, args=(guest, token), daemon=True).start()
        self._name_missing([])

    def _name_missing(self, names: list[str]) -> None:
        """Let the workers that have come know which have not."""
        self._missing_names = names
        for peer in list(self._peers.values()):
            peer.send({"missing": names})

    @property
    def _missing(self) -> list[int]:
        return [rank for rank in range(1, self._place.num_workers) if rank not in self._peers]

    def _admit(self, guest: socket.socket, token: str) -> None:
        peer = _greeted(guest, token, 0)
        with self._lock:
            if peer and peer.rank in self._missing:
                self._follow(peer)
                self._is_complete = not self._missing
            else:
                (peer or guest).close()

    def _join(self, deadline: Deadline) -> None:
        """Connect to the chief."""
        peer = None
        while not peer:
            deadline.check([self._rendezvous.describe(0)])
            with contextlib.suppress(OSError, LookupError, TypeError):
                if address := self._rendezvous.find():
                    host, port, token = address
                    connection = socket.create_connection((host, port), _GREETING_SECONDS)
                    if peer := _greeted(connection, token, self._place.rank):
                        break
                    connection.close()
            time.sleep(_PAUSE_SECONDS)
        self._is_complete = True
        self._follow(peer)

    def _follow(self, peer: "_Peer") -> None:
        self._peers[peer.rank] = peer
        peer.connection.settimeout(self._timeout_seconds)
        peer.thread = threading.Thread(target=self._read, args=(peer,), name=f"worker {peer.rank}", daemon=True)
        peer.thread.start()

    def _read(self, peer: "_Peer") -> None:
        """Receive messages until the last one; leave the process if the worker is lost before."""
        reason = "its connection ended"
        try:
            with peer.file as file:
                while (line := file.readline(_MAX_BYTES)).endswith(b"\n"):
                    message = json.loads(line)
                    if message.get("is_last"):
                        self._is_over.set()
                    if message.get("has_failed"):
                        reason = "it failed"
                        if self._is_failing.wait(2 * _NEWS_SECONDS):
                            return
                        break
                    if "missing" in message:
                        self._missing_names = message["missing"]
                    elif message:
                        peer.messages.put(message)
        except TimeoutError:
            reason = f"it was silent for {self._timeout_seconds:g} s"
        except (OSError, ValueError) as error:
            reason = str(error)
        with self._lock:
            if not self._is_complete:
                del self._peers[peer.rank]
                return
            if self._is_over.is_set():
                return
            self._is_over.set()
        self._leave(f"worker {peer.rank}: {reason}")

    def _receive(self, peer: "_Peer") -> dict[str, Any]:
        while True:
            with contextlib.suppress(queue.Empty):
                return peer.messages.get(timeout=POLL_SECONDS)
            self._check()

    def _beat_forever(self) -> None:
        while not self._is_over.wait(self._timeout_seconds / 4):
            for peer in list(self._peers.values()):
                peer.write(_BEAT)


Team = OneWorker | SeveralWorkers


class _Peer:
    """Another worker, which knows the token."""

    thread: threading.Thread

    def __init__(self, rank: int, connection: socket.socket, file: BinaryIO) -> None:
        self.rank, self.connection, self.file = rank, connection, file
        self.messages: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        # The child of a killed process, such as one that loads data, would keep the connection open.
        os.register_at_fork(after_in_child=self._forget)

    def send(self, message: dict[str, Any]) -> None:
        line = json.dumps(message).encode() + b"\n"
        if len(line) > _MAX_BYTES:
            raise InputError(
                f"config, names of state and random generators have {len(line)} bytes as JSON; several workers exchange"
                f" at most {_MAX_BYTES}"
            )
        self.write(line)

    def write(self, line: bytes) -> None:
        # Why it cannot be written is found by the thread that reads.
        with self._lock, contextlib.suppress(OSError):
            self.connection.sendall(line)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()

    def _forget(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self.connection.detach())


def _greeted(connection: socket.socket, token: str, rank: int) -> _Peer | None:
    """Return the worker at the other end, once both have shown that they know the token; None: another program."""
    connection.settimeout(_GREETING_SECONDS)
    file, challenge = connection.makefile("rb"), secrets.token_hex(16)

    def ask(message: dict[str, Any]) -> Any:
        connection.sendall(json.dumps(message).encode() + b"\n")
        return json.loads(file.readline(_MAX_GREETING_BYTES))

    def proof(*words: Any) -> str:
        return hmac.new(token.encode(), json.dumps(words).encode(), "sha256").hexdigest()

    with contextlib.suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
        other = ask({"rank": rank, "challenge": challenge})
        shown = ask({"proof": proof(rank, challenge, other["challenge"])})["proof"]
        # Our own proof, sent back, proves nothing.
        if other["rank"] != rank and hmac.compare_digest(shown, proof(other["rank"], other["challenge"], challenge)):
            return _Peer(other["rank"], connection, file)
    return None
