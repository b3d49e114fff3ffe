"""Requests that are passed to the application in this process, without a socket."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.types import ASGIApp, Message

from localvertex.api.rpc.methods import HttpRequest

Headers = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, kw_only=True)
class HttpResponse:
    """Response of the application."""

    code: int
    body: bytes


async def exchange(app: ASGIApp, request: HttpRequest, headers: Headers) -> HttpResponse:
    """Pass one request to the application and return its response.

    Args:
        app: The application.
        request: The request.
        headers: Its headers, without the ones that describe the body.
    """
    length = str(len(request.body)).encode()
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "2",
        "scheme": "https",
        "method": request.method,
        "path": request.path,
        "root_path": "",
        "query_string": request.query.encode(),
        "headers": [(b"content-type", b"application/json"), (b"content-length", length), *headers],
    }
    requests: list[Message] = [{"type": "http.request", "body": request.body, "more_body": False}]
    responses: list[Message] = []

    async def receive() -> Message:
        if not requests:
            # The client does not disconnect: a call that is cancelled ends this task.
            await asyncio.Event().wait()
        return requests.pop()

    async def send(message: Message) -> None:
        responses.append(message)

    try:
        await app(scope, receive, send)
    except Exception:
        # The application has responded to a defect before it raises it.
        if not responses:
            raise
    body = b"".join(each.get("body", b"") for each in responses)
    return HttpResponse(code=responses[0]["status"], body=body)
