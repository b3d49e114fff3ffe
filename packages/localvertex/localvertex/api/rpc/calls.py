"""gRPC calls, each answered as the HTTP request that its method is bound to."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable

import grpc
import grpc.aio
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp

from localvertex.api.rest.errors import ApiError, Status
from localvertex.api.rpc import methods
from localvertex.api.rpc.exchange import HttpResponse, exchange
from localvertex.api.rpc.methods import HttpRequest

Allows = Callable[[str], bool]

_UNREAD = HttpRequest(method="GET", path="/v1", query="", body=b"")

_MAX_DETAILS = 4000
"""Bytes of an error in a trailer; clients refuse 8 KiB of trailers."""


class Calls(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Answers every call, whatever its method.

    Args:
        app: The application that answers REST.
        allows: Whether a call with this `authorization` may be carried out.
        seconds: How long a request may take to arrive.
    """

    def __init__(self, app: ASGIApp, *, allows: Allows, seconds: float) -> None:
        self._app, self._allows, self._seconds = app, allows, seconds

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        """Return the handler of one call."""
        path = handler_call_details.method

        # A single request is a stream with one message; read as such, half of one can be refused after a time.
        async def answer(requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext) -> bytes:
            given = dict(context.invocation_metadata() or ()).get("authorization")
            header, response = given if isinstance(given, str) else "", b""
            try:
                # Nothing of a stranger is read: the application refuses a request without a body in its own words.
                data = await self._read(requests) if self._allows(header) else None
                response = await answer_call(self._app, path, data, header)
            except TimeoutError:
                text = f"the rest of the request did not arrive within {self._seconds:g} s; nothing was done"
                await context.abort(grpc.StatusCode.CANCELLED, text)
            except ApiError as error:
                await context.abort(grpc.StatusCode[error.status.name], _shorten(str(error)))
            except Exception as error:
                text = _shorten(f"internal error in localvertex: {type(error).__name__}: {error}")
                await context.abort(grpc.StatusCode.INTERNAL, text)
            return response

        return grpc.stream_unary_rpc_method_handler(answer)

    async def _read(self, requests: AsyncIterator[bytes]) -> bytes:
        """Return the only message of a request, when the request is complete.

        Raises:
            ApiError: It has no message or several.
            TimeoutError: It did not arrive in time.
        """
        found = None
        async with asyncio.timeout(self._seconds):
            async for each in requests:
                if found is not None:
                    raise ApiError(Status.UNIMPLEMENTED, "expected one message in the request, found several")
                found = each
        if found is None:
            raise ApiError(Status.UNIMPLEMENTED, "expected one message in the request, found none")
        return found


async def answer_call(app: ASGIApp, path: str, data: bytes | None, authorization: str) -> bytes:
    """Return the serialised response of a call.

    Args:
        app: The application that answers REST.
        path: Service and method.
        data: The serialised request, None for one that the application will refuse.
        authorization: The header, which is neither kept nor logged.

    Raises:
        ApiError: The request is refused.
    """
    headers = [(b"host", b"localhost")]
    if authorization:
        headers.append((b"authorization", authorization.encode()))
    if data is None:
        raise _error_of(await exchange(app, _UNREAD, headers))
    method = await run_in_threadpool(methods.find, path)
    if method is None:
        raise ApiError(Status.UNIMPLEMENTED, f"this server has no {path[:300]}; it has the version v1")
    response = await exchange(app, await run_in_threadpool(method.http_request, data), headers)
    if response.code != 200:
        raise _error_of(response)
    return await run_in_threadpool(method.serialise, response.body)


def _error_of(response: HttpResponse) -> ApiError:
    """Read an error of the application."""
    try:
        error = json.loads(response.body)["error"]
        return ApiError(Status[error["status"]], error["message"])
    except (ValueError, LookupError, TypeError):
        return ApiError(Status.INTERNAL, f"the server responded with HTTP code {response.code}")


def _shorten(text: str) -> str:
    """Return an error that fits in a trailer, where characters other than ASCII take three bytes per byte."""
    text, num_bytes = text.encode(errors="replace").decode(), 0
    for index, character in enumerate(text):
        num_bytes += 1 if " " <= character <= "~" and character != "%" else 3 * len(character.encode())
        if num_bytes > _MAX_DETAILS:
            return f"{text[:index]}..."
    return text
