"""The routes of the API, and how a request becomes a call and then a response."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Protocol

from anyio import CapacityLimiter, to_thread
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from localvertex._base.json_object import JsonObject
from localvertex.api import connection
from localvertex.api.access import session
from localvertex.api.access.access import Access
from localvertex.api.rest import known_methods
from localvertex.api.rest.call import Call, Location, content_of
from localvertex.api.rest.errors import error_body
from localvertex.api.rest.guard import Guard
from localvertex.api.rest.json_response import JsonResponse, response_of
from localvertex.api.rest.known_methods import KnownMethod

Method = Callable[[Call], JsonObject]
Endpoint = Callable[[Request], Awaitable[Response]]
Beside = Callable[[Starlette], AbstractAsyncContextManager[None]]

_PARENT = "/v1/projects/{project:part}/locations/{region:part}"

_ID = r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}"

_PATTERNS = {
    # A project or region cannot leave a folder.
    "part": r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}",
    # A colon after an id starts the name of a custom method, an @ a version number or alias.
    "id": _ID,
    "version": rf"{_ID}(?:@[A-Za-z0-9-]{{1,128}})?",
}

_WAITING, _MAX_WAITING = ("deployModel", "predict"), 40
"""Methods that wait for models, for minutes if need be; all other methods are answered meanwhile."""


class RequestHandler(Protocol):
    """The services that answer the requests."""

    unserved: str
    """The answer to a call of Vertex AI that it does not have; `{name}` is the method."""

    @property
    def routes(self) -> Sequence[Route]:
        """Its pages, and everything else that is not a method of the API."""
        ...

    @property
    def collections(self) -> Mapping[str, Mapping[str, tuple[str, str, Method]]]:
        """For each collection its methods: HTTP method, path after the collection's, implementation."""
        ...

    def open(self) -> None:
        """Prepare for the first request."""
        ...

    def close(self) -> None:
        """Stop everything that runs."""
        ...


class Pattern(StringConvertor):
    """A part of a path with a pattern of its own.

    Args:
        regex: The pattern.
    """

    def __init__(self, regex: str) -> None:
        self.regex = regex  # type: ignore[misc]


def application(service: RequestHandler, access: Access, beside: Beside = lambda _: nullcontext()) -> Starlette:
    """Build the application.

    Args:
        service: The services that answer the requests.
        access: Who may call.
        beside: Entered with the application while the service is open.
    """
    for name, pattern in _PATTERNS.items():
        register_url_convertor(name, Pattern(pattern))

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        service.open()
        async with beside(app):
            yield
        await run_in_threadpool(service.close)

    app = Starlette(
        routes=[session.route(access), *_routes(service, access)],
        middleware=[Middleware(Guard, access=access, seconds=connection.REQUEST_SECONDS)],
        exception_handlers={HTTPException: _on_http_error, Exception: _on_defect},
        lifespan=lifespan,
    )
    app.state.unserved = service.unserved
    return app


def _routes(service: RequestHandler, access: Access) -> list[Route]:
    """Build the routes of all pages and API methods."""
    found = [*service.routes]
    waiting = CapacityLimiter(_MAX_WAITING)
    for collection, methods in service.collections.items():
        for name, (http_method, suffix, method) in methods.items():
            path = f"{_PARENT}/{collection}{suffix}"
            respond = _endpoint(method, access, waiting if name in _WAITING else None)
            found.append(Route(path, respond, methods=[http_method], name=f"{collection}.{name}"))
    return found


def _endpoint(method: Method, access: Access, limiter: CapacityLimiter | None = None) -> Endpoint:
    """Build the endpoint of an API method; one with a limiter has threads of its own."""

    async def respond(request: Request) -> Response:
        body = await request.body()
        # A large body is parsed and answered in a thread, so that other requests do not wait for it.
        return await to_thread.run_sync(response_of, lambda: method(_call_of(request, body, access)), limiter=limiter)

    return respond


def _call_of(request: Request, body: bytes, access: Access) -> Call:
    """Read a request.

    Raises:
        ApiError: The body is not a JSON object.
    """
    parts = request.path_params
    resource_id, _, version = parts.get("id", "").partition("@")
    return Call(
        location=Location(project=parts["project"], region=parts["region"]),
        resource_id=resource_id,
        resource_version=version,
        parents={name: part for name, part in parts.items() if name not in ("project", "region", "id")},
        query=dict(request.query_params),
        repeated={name: request.query_params.getlist(name) for name in request.query_params},
        body=content_of(body),
        run=access.run_of(request.headers.get("authorization")) or "",
        jobs=access.jobs_of(request.headers.get("authorization")),
    )


async def _on_http_error(request: Request, error: Exception) -> Response:
    """Respond that the path does not exist, or not with this HTTP method, or that localvertex does not have it."""
    code = error.status_code if isinstance(error, HTTPException) else 500
    known = await run_in_threadpool(known_methods.find, request.method, request.url.path)
    is_beta = request.url.path.startswith("/v1beta1/")
    if is_beta or (known and not _is_served(request.app, known)):
        text = request.app.state.unserved.format(name=known.name if known else "the version v1beta1")
        return JsonResponse(error_body(501, "UNIMPLEMENTED", text), 501)
    text = f"this server has no {request.method} {request.url.path[:300]}"
    return JsonResponse(error_body(code, "UNIMPLEMENTED" if code == 405 else "NOT_FOUND", text), code)


def _is_served(app: Starlette, method: KnownMethod) -> bool:
    """Return whether the server has a method; a path that is wrong in one of its ids is then not found."""
    scope = {"type": "http", "path": method.example, "method": method.http_method}
    return any(route.matches(scope)[0] is Match.FULL for route in app.routes)


async def _on_defect(request: Request, error: Exception) -> Response:
    """Report a defect of localvertex itself; the server keeps running."""
    text = f"internal error in localvertex: {type(error).__name__}: {error}"
    return JsonResponse(error_body(500, "INTERNAL", text), 500)
