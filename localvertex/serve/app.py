"""The routes of the API, and how a request becomes a call and its answer."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import StringConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from localvertex.serve.api.call import Call, Location
from localvertex.serve.api.errors import ApiError, error_body, invalid
from localvertex.serve.api.guard import Guard
from localvertex.serve.service import Service
from localvertex.values.json_text import parse_json
from userinput.errors import UserError

Method = Callable[[Call], dict[str, Any]]
Endpoint = Callable[[Request], Awaitable[Response]]

PARENT = "/{api:api}/projects/{project:part}/locations/{region:part}"


class Part(StringConvertor):
    """An id or a name in an address: nothing that could leave a folder."""

    regex = r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}"


class ResourceId(StringConvertor):
    """The id of a resource; what follows a colon is a method of its own."""

    regex = r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}"


class VersionedId(StringConvertor):
    """The id of a resource that may have a version, as a number or an alias, behind an `@`."""

    regex = r"[A-Za-z0-9][A-Za-z0-9_-]{0,127}(?:@[A-Za-z0-9-]{1,128})?"


class Api(StringConvertor):
    """The versions that are spoken."""

    regex = "v1beta1|v1"


def application(service: Service) -> Starlette:
    """The whole server."""
    for name, convertor in {"part": Part, "id": ResourceId, "version": VersionedId, "api": Api}.items():
        register_url_convertor(name, convertor())

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        service.open()
        yield
        await run_in_threadpool(service.close)

    return Starlette(
        routes=routes(service),
        middleware=[Middleware(Guard)],
        exception_handlers={HTTPException: on_http_error, Exception: on_defect},
        lifespan=lifespan,
    )


def routes(service: Service) -> list[Route]:
    """Every address that is answered."""
    found = list(service.pages.routes)
    for collection, methods in service.collections.items():
        for name, (http_method, suffix, method) in methods.items():
            path = f"{PARENT}/{collection}{suffix}"
            found.append(Route(path, endpoint(method), methods=[http_method], name=f"{collection}.{name}"))
    return found


def endpoint(method: Method) -> Endpoint:
    """A method of the service behind an address."""

    async def answer(request: Request) -> Response:
        try:
            call = call_of(request, await request.body())
            return JSONResponse(await run_in_threadpool(method, call))
        except ApiError as error:
            code = error.status.http_code
            return JSONResponse(error_body(code, error.status.name, str(error)), code)

    return answer


def call_of(request: Request, body: bytes) -> Call:
    """The request, read.

    Raises:
        ApiError: the body is no JSON object.
    """
    try:
        content = parse_json(body.decode(), "body") if body.strip() else {}
    except UnicodeDecodeError:
        raise invalid("the body is not UTF-8") from None
    except UserError as error:
        raise invalid(str(error)) from None
    if not isinstance(content, dict):
        raise invalid(f"the body has to be a JSON object, found {type(content).__name__}")
    parts = request.path_params
    resource_id, _, version = parts.get("id", "").partition("@")
    return Call(
        version="v1beta1" if parts["api"] == "v1beta1" else "v1",
        location=Location(project=parts["project"], region=parts["region"]),
        resource_id=resource_id,
        resource_version=version,
        query=dict(request.query_params),
        body=content,
    )


async def on_http_error(request: Request, error: Exception) -> Response:
    """No such address, or not with this HTTP method."""
    code = error.status_code if isinstance(error, HTTPException) else 500
    text = f"there is no {request.method} {request.url.path[:300]} here"
    return JSONResponse(error_body(code, "UNIMPLEMENTED" if code == 405 else "NOT_FOUND", text), code)


async def on_defect(request: Request, error: Exception) -> Response:
    """A defect of ours; the server goes on."""
    text = f"localvertex failed: {type(error).__name__}: {error}"
    return JSONResponse(error_body(500, "INTERNAL", text), 500)
