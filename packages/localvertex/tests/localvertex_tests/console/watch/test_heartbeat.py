"""A stream without changes: heartbeats show that it works, and it ends as soon as its client is gone."""

import asyncio
from typing import Any

import pytest

from localvertex.console.events import stream
from localvertex.console.events.stream import MAX_STREAMS, Event, EventStream, Streams


def test_a_stream_without_changes_has_heartbeats_until_its_client_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "_POLL_SECONDS", 0.001)
    monkeypatch.setattr(stream, "_HEARTBEAT_SECONDS", 0.002)
    waiting: list[list[Event]] = [[("run", {"number": float("nan")})]]
    sent: list[dict[str, Any]] = []

    async def serve() -> None:
        is_gone = asyncio.Event()

        async def send(message: Any) -> None:
            sent.append(message)
            if len(sent) == 5:
                is_gone.set()

        async def receive() -> Any:
            await is_gone.wait()
            return {"type": "http.disconnect"}

        response = EventStream(lambda: waiting.pop() if waiting else [], Streams())
        await response({"type": "http", "method": "GET"}, receive, send)

    asyncio.run(serve())
    bodies = [each["body"] for each in sent[1:]]
    assert bodies.count(b'event: run\ndata: {"number":"NaN"}\n\n') == 1
    assert bodies.count(b"event: alive\ndata: {}\n\n") == len(bodies) - 1
    assert all(each["more_body"] for each in sent[1:])


def test_beyond_the_maximum_a_stream_is_refused_until_another_one_ends() -> None:
    streams = Streams()

    async def answer() -> list[dict[str, Any]]:
        sent: list[dict[str, Any]] = []
        is_gone = asyncio.Event()

        async def send(message: Any) -> None:
            sent.append(message)
            is_gone.set()

        async def receive() -> Any:
            await is_gone.wait()
            return {"type": "http.disconnect"}

        await EventStream(lambda: [], streams)({"type": "http", "method": "GET"}, receive, send)
        return sent

    streams.num_open = MAX_STREAMS
    refused = asyncio.run(answer())
    assert refused[0]["status"] == 503
    assert (b"retry-after", b"10") in refused[0]["headers"]
    assert b"100 event streams are open, which is the maximum" in refused[1]["body"]
    streams.num_open = MAX_STREAMS - 1
    assert asyncio.run(answer())[0]["status"] == 200
    assert streams.num_open == MAX_STREAMS - 1
