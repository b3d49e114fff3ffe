"""A response that never ends by itself: server-sent events, as long as the client reads them.

Nothing is kept for a client that stops reading: the next look at the files waits until the client has received all.
The events of `GET /local/events?run=ID&log=T&file=F&job=T`; without `run`, only `runs` and `alive`:

    run         `run`: the fields of the run; `tasks`: the changed entries, or all of them with `is_first`
    log         `task`, `file`, `files`, `text`, `offset`, `end`, `size`, `inode`; an `offset` other than the last `end`
                means that the log was replaced or a part was skipped
    job, steps  of a custom job: status, timeline and goodput; new points of the curves
    problem     `text`: why the record cannot be read
    end         the last event: the run or the job was deleted
    runs        a run has changed: read `GET /local/runs` again
    alive       empty; the heartbeat.
"""

import asyncio
from collections.abc import Callable, Iterable

from anyio import CapacityLimiter, create_task_group, to_thread
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from localvertex._base.json_object import JsonObject
from localvertex._base.json_text import encode
from localvertex.api.rest.errors import Status, error_body
from localvertex.api.rest.json_response import JsonResponse

Event = tuple[str, JsonObject]
"""Name and content."""

LAST = "end"
"""The event after which nothing can follow."""

MAX_STREAMS = 100
"""Per server: more tabs than a user has open."""

_NUM_THREADS = 8
"""Threads for all streams: the other routes have threads of their own."""

_POLL_SECONDS, _HEARTBEAT_SECONDS = 0.5, 15.0

_HEARTBEAT: Event = ("alive", {})
"""An event, because pages do not see comments. Without it, a page knows that the connection or the server hangs."""


class Streams:
    """State shared by the streams of a server."""

    def __init__(self) -> None:
        self.threads = CapacityLimiter(_NUM_THREADS)
        self.num_open = 0


class EventStream(Response):
    """A stream of events; 503 if too many are open.

    Args:
        poll: Returns the events since its last call; called in a thread.
        streams: State shared by all streams.
    """

    media_type = "text/event-stream"

    def __init__(self, poll: Callable[[], Iterable[Event]], streams: Streams) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._poll, self._streams = poll, streams

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the client is gone, the server stops, or nothing can follow."""
        if self._streams.num_open >= MAX_STREAMS:
            await _refusal()(scope, receive, send)
            return
        self._streams.num_open += 1
        try:
            await self._send(scope, receive, send)
        finally:
            self._streams.num_open -= 1

    async def _send(self, scope: Scope, receive: Receive, send: Send) -> None:
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
            group.start_soon(_beat, send)
            await _wait_for_close(receive)
            group.cancel_scope.cancel()

    async def _write(self, send: Send) -> None:
        while True:
            for event in await to_thread.run_sync(lambda: list(self._poll()), limiter=self._streams.threads):
                await send(_part(event))
                if event[0] == LAST:
                    await send({"type": "http.response.body", "body": b"", "more_body": False})
                    return
            await asyncio.sleep(_POLL_SECONDS)


def _refusal() -> Response:
    """Return the answer to a client that exceeds the maximum."""
    status = Status.UNAVAILABLE
    text = f"{MAX_STREAMS} event streams are open, which is the maximum; close tabs of the console, and try again"
    body = error_body(status.http_code, status.name, text)
    return JsonResponse(body, status.http_code, {"Retry-After": "10"})


async def _beat(send: Send) -> None:
    """Send heartbeats, even while a large record is read; the first one shows at once that the stream works."""
    while True:
        await send(_part(_HEARTBEAT))
        await asyncio.sleep(_HEARTBEAT_SECONDS)


def _part(event: Event) -> Message:
    name, content = event
    data = b"event: %s\ndata: %s\n\n" % (name.encode(), encode(content))
    return {"type": "http.response.body", "body": data, "more_body": True}


async def _wait_for_close(receive: Receive) -> None:
    """Wait until the client has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass
