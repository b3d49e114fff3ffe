"""Routes of the console outside Vertex AI's paths. Requests are answered in a thread, and errors are JSON."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from localvertex._base.json_object import JsonObject
from localvertex.api.rest.call import content_of
from localvertex.api.rest.json_response import response_of
from localvertex.console.compression import compressed


@dataclass(frozen=True, kw_only=True)
class LocalCall:
    """One request to a local route."""

    path: Mapping[str, str] = field(default_factory=dict)
    """The parts of the path by their names in the route."""
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)


Answer = Callable[[LocalCall], JsonObject | Response]

_Method = TypeVar("_Method", bound=Callable[..., JsonObject | Response])

_ROUTE = "local_route"
"""The attribute of a method that answers a route."""


def local_route(http_method: str, path: str) -> Callable[[_Method], _Method]:
    """Mark a method of the console that answers a route; it is called in a thread.

    Args:
        http_method: GET, POST or DELETE.
        path: Its path, below `/local/`.
    """

    def mark(method: _Method) -> _Method:
        setattr(method, _ROUTE, (http_method, path))
        return method

    return mark


def routes_of(part: object) -> list[Route]:
    """Build the routes of all methods that are marked."""
    methods = [getattr(part, name) for name, each in vars(type(part)).items() if hasattr(each, _ROUTE)]
    return [_route(each, *getattr(each, _ROUTE)) for each in methods]


def _route(answer: Answer, http_method: str, path: str) -> Route:
    async def respond(request: Request) -> Response:
        body = await request.body()
        found = await run_in_threadpool(response_of, lambda: answer(_call_of(request, body)))
        return await run_in_threadpool(compressed, found, request.headers)

    return Route(path, respond, methods=[http_method])


def _call_of(request: Request, body: bytes) -> LocalCall:
    return LocalCall(path=request.path_params, query=dict(request.query_params), body=content_of(body))
