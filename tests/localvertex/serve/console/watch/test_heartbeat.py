"""A stream without changes: comments show that it is there, and it is left as soon as its client is gone."""

import asyncio
from typing import Any

import pytest
from anyio import CapacityLimiter

from localvertex.serve.console.events import stream
from localvertex.serve.console.events.stream import Event, EventStream


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

        response = EventStream(lambda: waiting.pop() if waiting else [], CapacityLimiter(1))
        await response({"type": "http", "method": "GET"}, receive, send)

    asyncio.run(serve())
    assert sent[1]["body"] == b'event: run\ndata: {"number":"NaN"}\n\n'
    assert {each["body"] for each in sent[2:]} == {b": still connected\n\n"}
    assert all(each["more_body"] for each in sent[1:])
