"""Whether the other machines' TensorFlow servers live: with parameter servers, TensorFlow itself does not find out.

A live gRPC server sends the first frame of HTTP/2 to every client, without any Python. A frozen one accepts the
connection and is silent, and a lost one refuses it.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from exact_resume.workers.deadline import POLL_SECONDS, Deadline

State = Literal["alive", "frozen", "gone"]
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""The client's part of the start of a connection: a magic line, and a frame with no settings (RFC 9113, 3.4)."""
_ANSWER_SECONDS = 2.0
_LOOK_SECONDS = 1.0
"""Interval between two looks."""
_NUM_LOOKS = 3
"""Looks in a row after which a peer counts as lost: 9 seconds if it is frozen, 3 if it is gone."""


class Peer:
    """Another machine of the job."""

    def __init__(self, name: str, address: str) -> None:
        """Name a peer, such as `worker 0`, at host:port."""
        self.name = f"{name} ({address})"
        self._address = address
        self._state, self._num_looks = "gone", 0
        self.was_alive = False

    def look(self) -> State:
        """Look at the peer now."""
        state = _look(self._address)
        self._num_looks = self._num_looks + 1 if state == self._state else 1
        self._state = state
        self.was_alive = self.was_alive or state == "alive"
        return state

    def loss(self, *, may_return: bool) -> str:
        """Look at the peer; return how it was lost, or nothing if it is not.

        Args:
            may_return: Whether a peer that is gone may start again, and is not lost.
        """
        state = self.look()
        is_lost = self.was_alive and state != "alive" and self._num_looks >= _NUM_LOOKS
        if not is_lost or (state == "gone" and may_return):
            return ""
        return (
            f"{self.name} is gone" if state == "gone" else f"{self.name} is frozen: it accepts connections in silence"
        )


def wait_for(peers: Sequence[Peer], deadline: Deadline) -> None:
    """Return when all peers are alive.

    Raises:
        TimedOut: They have not come in time, or a stop was requested.
    """
    for peer in peers:
        # A look takes seconds, and a stop is followed between two of them.
        while not peer.was_alive and peer.look() != "alive":
            deadline.check([each.name for each in peers if not each.was_alive])
            time.sleep(POLL_SECONDS)


@contextlib.contextmanager
def watched(peers: Sequence[Peer], leave: Callable[[str], object]) -> Iterator[None]:
    """Look at the peers in a thread; call `leave` with the reason as soon as one is frozen.

    One that is gone may return; if its part is needed, TensorFlow itself fails.
    """
    closed = threading.Event()
    for peer in peers:
        # `wait_for` has seen it; it may freeze before the first look here.
        peer.was_alive = True

    def look(peer: Peer) -> None:
        while not closed.wait(_LOOK_SECONDS):
            if (reason := peer.loss(may_return=True)) and not closed.is_set():
                leave(reason)

    for peer in peers:
        threading.Thread(target=look, args=(peer,), name=f"look at {peer.name}", daemon=True).start()
    try:
        yield
    finally:
        closed.set()


def _look(address: str) -> State:
    host, _, port = address.rpartition(":")
    try:
        connection = socket.create_connection((host, int(port)), timeout=_ANSWER_SECONDS)
    except OSError:
        return "gone"
    with connection:
        try:
            connection.sendall(_PREFACE)
            return "alive" if connection.recv(1) else "gone"
        except TimeoutError:
            return "frozen"
        except OSError:
            return "gone"
