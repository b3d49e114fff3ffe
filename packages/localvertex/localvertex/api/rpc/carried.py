"""gRPC calls over HTTP, as {path, message}: for steps whose Vertex AI client is older than its REST transport."""

from base64 import b64decode, b64encode

from anyio import from_thread
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from localvertex._base.json_object import JsonObject
from localvertex.api.rest.call import content_of
from localvertex.api.rest.errors import invalid
from localvertex.api.rest.json_response import response_of

PATH = "/rpc"


async def _respond(request: Request) -> Response:
    # Without such a client, nothing of gRPC is imported.
    from localvertex.api.rpc.calls import answer_call

    body, header = await request.body(), request.headers.get("authorization", "")

    def answer() -> JsonObject:
        content = content_of(body)
        try:
            path, message = str(content["path"]), b64decode(content["message"])
        except (LookupError, TypeError, ValueError):
            raise invalid("expected the path of a gRPC method and its message in Base64") from None
        return {"message": b64encode(from_thread.run(answer_call, request.app, path, message, header)).decode()}

    return await run_in_threadpool(response_of, answer)


ROUTE = Route(PATH, _respond, methods=["POST"])
