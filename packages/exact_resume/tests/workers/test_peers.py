"""A peer is alive, frozen or gone; only one that was alive can be lost."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from exact_resume.workers import peers
from exact_resume.workers.deadline import Deadline, TimedOut
from exact_resume.workers.peers import Peer, wait_for, watched
from exact_resume.workers.signals import StopRequest


class Server:
    """A server that answers as gRPC does, until it is frozen or closed."""

    def __init__(self) -> None:
        self._kept: list[socket.socket] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.is_frozen = False
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                guest, _ = self._socket.accept()
            except OSError:
                return
            self._kept.append(guest)
            if not self.is_frozen:
                guest.sendall(b"\0\0\0\4\0\0\0\0\0")

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        for each in (self._socket, *self._kept):
            each.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait long for a peer that answers, and briefly for one that `freeze` makes silent."""
    monkeypatch.setattr(peers, "_ANSWER_SECONDS", 60.0)
    monkeypatch.setattr(peers, "_LOOK_SECONDS", 0.02)


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def freeze(server: Server, monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    def set_frozen(is_frozen: bool) -> None:
        server.is_frozen = is_frozen
        monkeypatch.setattr(peers, "_ANSWER_SECONDS", 0.1 if is_frozen else 60.0)

    return set_frozen


def losses(peer: Peer, *, may_return: bool) -> list[str]:
    return [peer.loss(may_return=may_return) for _ in range(4)]


def test_a_frozen_peer_is_lost_after_a_few_looks_in_a_row(server: Server, freeze: Callable[[bool], None]) -> None:
    peer = Peer("worker 0", server.address)
    assert peer.loss(may_return=True) == ""
    freeze(True)
    reason = f"worker 0 ({server.address}) is frozen: it accepts connections in silence"
    assert losses(peer, may_return=True) == ["", "", reason, reason]
    freeze(False)
    assert losses(peer, may_return=True) == [""] * 4


def test_a_peer_that_is_gone_is_lost_unless_it_may_return(server: Server) -> None:
    one, other = Peer("chief 0", server.address), Peer("worker 0", server.address)
    assert one.look() == other.look() == "alive"
    server.close()
    assert losses(one, may_return=False)[-1] == f"chief 0 ({server.address}) is gone"
    assert losses(other, may_return=True) == [""] * 4


def test_a_peer_that_has_not_come_yet_is_not_lost(server: Server) -> None:
    peer = Peer("chief 0", "127.0.0.1:1")
    assert losses(peer, may_return=False) == [""] * 4
    said: list[str] = []
    with pytest.raises(TimedOut):
        wait_for([peer], Deadline(StopRequest(), 0.1, said.append))
    assert "still waiting for chief 0 (127.0.0.1:1)" in said[-1]
    wait_for([Peer("chief 0", server.address)], Deadline(StopRequest(), 60, said.append))


def test_the_watch_reports_a_frozen_peer_and_ends(server: Server, freeze: Callable[[bool], None]) -> None:
    reasons, reported = list[str](), threading.Event()

    def leave(reason: str) -> None:
        reasons.append(reason)
        reported.set()

    # It freezes before the first look of the watch.
    freeze(True)
    with watched([Peer("ps 0", server.address)], leave):
        assert reported.wait(60)
    assert "is frozen" in reasons[0]
