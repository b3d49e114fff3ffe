"""A response that never ends by itself: server-sent events, as long as the client reads them.

Nothing is kept for a client that stops reading: the next look at the files waits until the client has received all.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from anyio import CapacityLimiter, create_task_group, to_thread
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from localvertex.serve.api import json_response

Event = tuple[str, dict[str, Any]]
"""Name and content."""

LAST = "end"
"""The event after which nothing can follow."""

_POLL_SECONDS, _HEARTBEAT_SECONDS = 0.5, 15.0

_HEARTBEAT = b": still connected\n\n"


class EventStream(Response):
    """A stream of events.

    Args:
        poll: Returns the events since its last call; called in a thread.
        threads: Limits the threads of all streams.
    """

    media_type = "text/event-stream"

    def __init__(self, poll: Callable[[], Iterable[Event]], threads: CapacityLimiter) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._poll, self._threads = poll, threads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the client is gone, the server stops, or nothing can follow."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        if scope["method"] == "HEAD":
            # The next request of the connection would wait for ever.
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            return
        async with create_task_group() as group:

            async def write() -> None:
                await self._write(send)
                group.cancel_scope.cancel()

            group.start_soon(write)
            await _gone(receive)
            group.cancel_scope.cancel()

    async def _write(self, send: Send) -> None:
        # The first heartbeat shows at once that the stream works.
        silent = _HEARTBEAT_SECONDS
        while True:
            found = await to_thread.run_sync(lambda: list(self._poll()), limiter=self._threads)
            silent = 0.0 if found else silent + _POLL_SECONDS
            if silent >= _HEARTBEAT_SECONDS:
                silent = 0.0
                await send(_part(_HEARTBEAT))
            for name, content in found:
                await send(_part(b"event: %s\ndata: %s\n\n" % (name.encode(), json_response.encoded(content))))
                if name == LAST:
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
                    return
            await asyncio.sleep(_POLL_SECONDS)


def _part(data: bytes) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": True}


async def _gone(receive: Receive) -> None:
    """Wait until the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
