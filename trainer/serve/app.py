"""The two routes of the server, health and predictions, and the limits on what waits."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from trainer.serve import requests
from trainer.serve.batches import Batches
from trainer.serve.contract import Contract
from trainer.serve.requests import Refused

if TYPE_CHECKING:
    from trainer.results.saved_model import LoadedModel

_MAX_BODY_BYTES = 64 * 2**20
"""Limit of one request. The service itself takes less online; a batch prediction job sends up to 64 images in one."""
_MAX_REQUESTS = 64
_MAX_WAITING_BYTES = 4 * _MAX_BODY_BYTES
"""Limit of all requests that are read or wait for their predictions."""
_BODY_SECONDS = 60.0
"""Seconds within which the body of a request has to arrive."""


class Serving:
    """The state of the server: the loaded model, and the waiting requests."""

    def __init__(self) -> None:
        self.loaded: tuple[LoadedModel, Batches] | None = None
        """The model and what waits for it; None while it is loaded."""
        self.is_draining = False
        self.num_requests = 0
        """Requests that get predictions."""
        self._num_bytes = 0

    @property
    def not_ready(self) -> str:
        """Why there are no predictions now; empty when there are."""
        if self.is_draining:
            return "the server is shutting down"
        return "" if self.loaded else "the model is being loaded"

    async def predict(self, request: Request) -> Response:
        """Answer a request for predictions."""
        declared = request.headers.get("content-length", "")
        # The largest length where the body is sent in chunks.
        num_bytes = int(declared) if declared.isdecimal() else _MAX_BODY_BYTES
        try:
            if self.loaded is None or self.is_draining:
                raise Refused(503, f"{self.not_ready}; try again")
            if num_bytes > _MAX_BODY_BYTES:
                raise Refused(
                    413, f"the body has more than {_MAX_BODY_BYTES // 2**20} MiB; send fewer or smaller images"
                )
            if self.num_requests >= _MAX_REQUESTS or self._num_bytes + num_bytes > _MAX_WAITING_BYTES:
                raise Refused(429, "too many requests wait for their predictions; try again later")
        except Refused:
            # A client that still sends would miss an answer to a closed connection.
            await _discard(request)
            raise
        self.num_requests += 1
        self._num_bytes += num_bytes
        try:
            return JSONResponse({"predictions": await self._predictions(request, *self.loaded)})
        finally:
            self.num_requests -= 1
            self._num_bytes -= num_bytes

    async def _predictions(self, request: Request, model: "LoadedModel", batches: Batches) -> list[dict[str, Any]]:
        """Return the outputs of the model's signature for each instance."""
        submitted = batches.submit(await requests.parse(await _read(request), model.image_size))
        probabilities = await asyncio.wrap_future(submitted)
        answers = []
        for index, found in enumerate(probabilities):
            if not np.isfinite(found).all():
                raise Refused(500, f"instance {index}: the model predicts values that are not finite")
            answers.append({"probabilities": found.tolist(), "label": model.class_names[int(found.argmax())]})
        return answers


def application(serving: Serving, contract: Contract) -> Starlette:
    """Return the application with the routes of the contract."""

    async def health(request: Request) -> Response:
        return _error(503, serving.not_ready) if serving.not_ready else JSONResponse({})

    return Starlette(
        routes=[
            Route(contract.health_route, health, methods=["GET"]),
            Route(contract.predict_route, serving.predict, methods=["POST"]),
        ],
        exception_handlers={
            Refused: _on_refused,
            ClientDisconnect: _on_refused,
            HTTPException: _on_http_error,
            Exception: _on_defect,
        },
    )


def _error(status: int, reason: str) -> Response:
    return JSONResponse({"error": reason}, status, {"Retry-After": "1"} if status in (429, 503) else None)


async def _on_refused(request: Request, error: Exception) -> Response:
    if isinstance(error, Refused):
        return _error(error.status, str(error))
    return _error(400, "the client closed the connection")


async def _on_http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return _error(status, f"{request.method} {request.url.path} is not a route of this server")


async def _on_defect(request: Request, error: Exception) -> Response:
    # Starlette raises the error again, for the log.
    return _error(500, f"the server failed: {type(error).__name__}; its log has the traceback")


async def _read(request: Request) -> bytes:
    chunks, num_bytes = [], 0
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for chunk in request.stream():
                num_bytes += len(chunk)
                if num_bytes > _MAX_BODY_BYTES:
                    raise Refused(413, f"the body has more than {_MAX_BODY_BYTES // 2**20} MiB; send fewer images")
                chunks.append(chunk)
    except TimeoutError:
        raise Refused(408, f"the body did not arrive within {_BODY_SECONDS:g} s") from None
    return b"".join(chunks)


async def _discard(request: Request) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(_BODY_SECONDS):
            async for _ in request.stream():
                pass
