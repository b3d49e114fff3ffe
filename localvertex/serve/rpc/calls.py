"""gRPC calls, each answered as the HTTP request that its method is bound to."""

import asyncio
import json
from collections.abc import AsyncIterator

import grpc
import grpc.aio
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp

from localvertex.serve.api.errors import ApiError, Status
from localvertex.serve.rpc import methods
from localvertex.serve.rpc.exchange import HttpResponse, exchange

_MAX_DETAILS = 4000
"""Bytes of an error in a trailer; clients refuse 8 KiB of trailers."""


class Calls(grpc.GenericRpcHandler):  # type: ignore[misc]
    """Answers every call, whatever its method.

    Args:
        app: The application that answers REST.
        seconds: How long a request may take to arrive.
    """

    def __init__(self, app: ASGIApp, *, seconds: float) -> None:
        self._app, self._seconds = app, seconds

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        """Return the handler of one call."""
        path = handler_call_details.method

        # A single request is a stream with one message; read as such, half of one can be refused after a time.
        async def answer(requests: AsyncIterator[bytes], context: grpc.aio.ServicerContext) -> bytes:
            response = b""
            try:
                response = await self._answer(path, await self._read(requests), context)
            except TimeoutError:
                text = f"the rest of the request did not arrive within {self._seconds:g} s; nothing was done"
                await context.abort(grpc.StatusCode.CANCELLED, text)
            except ApiError as error:
                await context.abort(grpc.StatusCode[error.status.name], _shortened(str(error)))
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

    async def _answer(self, path: str, data: bytes, context: grpc.aio.ServicerContext) -> bytes:
        """Return the serialised response.

        Raises:
            ApiError: The request is refused.
        """
        method = await run_in_threadpool(methods.find, path)
        if method is None:
            raise ApiError(Status.UNIMPLEMENTED, f"this server has no {path[:300]} over gRPC; REST may have it")
        request = await run_in_threadpool(method.http_request, data)
        headers = [(b"host", b"localhost")]
        for key, value in context.invocation_metadata() or ():
            # The application checks it; it is neither kept nor logged here.
            if key == "authorization":
                headers.append((b"authorization", value.encode() if isinstance(value, str) else value))
        response = await exchange(self._app, request, headers)
        if response.code != 200:
            raise _error_of(response)
        return await run_in_threadpool(method.serialised, response.body)


def _error_of(response: HttpResponse) -> ApiError:
    """Read an error of the application."""
    try:
        error = json.loads(response.body)["error"]
        return ApiError(Status[error["status"]], error["message"])
    except (ValueError, LookupError, TypeError):
        return ApiError(Status.INTERNAL, f"the server responded with HTTP code {response.code}")


def _shortened(text: str) -> str:
    """Return an error that fits in a trailer, where characters other than ASCII take three bytes per byte."""
    text, num_bytes = text.encode(errors="replace").decode(), 0
    for index, character in enumerate(text):
        num_bytes += 1 if " " <= character <= "~" and character != "%" else 3 * len(character.encode())
        if num_bytes > _MAX_DETAILS:
            return f"{text[:index]}..."
    return text
