"""Sockets on the loopback interface, and connections that close when a request does not arrive within a time."""

import asyncio
import os
import socket

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from localvertex._base.userinput.errors import UserError

HOST = "127.0.0.1"

EVENTS = "/local/events"
"""The path whose responses never end by themselves."""

REQUEST_SECONDS = 30.0
"""Time for the head of a request, and between two parts of its body."""

BACKLOG, MAX_CONNECTIONS = 100, 200
"""Connections that wait, and open ones: they need no token, and the server needs file descriptors for its runs."""

_LEAVE_SECONDS = 5.0
"""Time for clients when the server stops; one that does not read its response would delay the end forever."""


def listen(option: str, port: int) -> socket.socket:
    """Open a socket; port 0 takes a free one.

    Raises:
        UserError: The port, which the option gave, is in use or out of range.
    """
    if not 0 <= port <= 65535:
        raise UserError(f"{option} {port}: expected a port from 0 (any free one) to 65535")
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise UserError(f"{option} {port}: {reason}; choose another port, or 0 for a free one") from None


class Connection(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, which waits for the rest of a request's head for ever."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        # asyncio sets it only for sockets that it opens; without it, answers on open connections wait for 40 ms.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._watch()
        if len(self.connections) > MAX_CONNECTIONS:
            transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        if self._deadline is not None:
            self._deadline.cancel()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Finish the response when the server stops; cut off an endless one, and one that its client delays."""
        is_endless = self.cycle is not None and self.cycle.scope["path"] == EVENTS
        super().shutdown()
        self.loop.call_later(0 if is_endless else _LEAVE_SECONDS, self.transport.abort)

    def _watch(self) -> None:
        """Close the connection after a time without the head of a request; more parts of it do not prolong the time."""
        if self.conn.their_state is not h11.IDLE and self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        elif self.conn.their_state is h11.IDLE and self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_SECONDS, self.transport.close)
