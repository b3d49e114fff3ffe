"""A call is answered as the HTTP request it is bound to, and half of a call is none."""

import asyncio
import contextlib
import json
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import grpc
import grpc.aio
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from localvertex.api.rest.errors import ApiError, Status, error_body
from localvertex.api.rest.json_response import JsonResponse
from localvertex.api.rpc import methods
from localvertex.api.rpc.server import RpcServer

PARENT = "projects/p/locations/l"
PIPELINES = "/google.cloud.aiplatform.v1.PipelineService"
SCHEDULES = "/google.cloud.aiplatform.v1.ScheduleService"


class App:
    """An application that records requests and gives one response."""

    def __init__(self, response: Response | Exception | None = None) -> None:
        self.requests: list[tuple[str, str, dict[str, str], Any]] = []
        self.headers: list[dict[str, str]] = []
        self.response = response or JsonResponse({})
        methods = ["GET", "POST", "PATCH", "DELETE"]
        self.asgi = Starlette(routes=[Route("/{path:path}", self._respond, methods=methods)])

    async def _respond(self, request: Request) -> Response:
        body = await request.body()
        query = dict(parse_qsl(request.url.query))
        self.requests.append((request.method, request.url.path, query, json.loads(body) if body else None))
        self.headers.append(dict(request.headers))
        if isinstance(self.response, Exception):
            raise self.response
        return self.response


def message(path: str, **fields: Any) -> bytes:
    """Return a serialised request."""
    found = methods.find(path)
    assert found is not None
    return bytes(found.request(**fields).SerializeToString())


def with_server(
    folder: Path,
    app: App,
    use: Callable[[grpc.aio.Channel], Awaitable[None]],
    *,
    seconds: float = 30,
    allows: Callable[[str], bool] = lambda _: True,
) -> None:
    """Start a real server, and use it with a client that trusts its certificate."""

    async def run() -> None:
        server = RpcServer(folder, pytest.fail, seconds=seconds, allows=allows)
        line = await server.bind(65535)
        async with server.serve(app.asgi), channel(line, folder) as client:
            await use(client)

    asyncio.run(run())


@contextlib.asynccontextmanager
async def channel(line: str, folder: Path, host: str = "localhost") -> AsyncIterator[grpc.aio.Channel]:
    port = line.partition("localhost:")[2].partition('"')[0]
    roots = (folder / "roots.pem").read_bytes()
    async with grpc.aio.secure_channel(f"{host}:{port}", grpc.ssl_channel_credentials(roots)) as client:
        yield client


JOB = f"{PARENT}/pipelineJobs/j"
CALLS: list[tuple[str, dict[str, Any], tuple[str, str, dict[str, str], Any]]] = [
    (f"{PIPELINES}/GetPipelineJob", {"name": JOB}, ("GET", f"/v1/{JOB}", {}, None)),
    (
        f"{PIPELINES}/ListPipelineJobs",
        {"parent": PARENT, "filter": 'a="ü & b"', "page_size": 2, "read_mask": {"paths": ["display_name", "name"]}},
        (
            "GET",
            f"/v1/{PARENT}/pipelineJobs",
            {"filter": 'a="ü & b"', "pageSize": "2", "readMask": "displayName,name"},
            None,
        ),
    ),
    (
        f"{PIPELINES}/CreatePipelineJob",
        {"parent": PARENT, "pipeline_job_id": "j", "pipeline_job": {"display_name": "x", "labels": {"a_b": "c"}}},
        ("POST", f"/v1/{PARENT}/pipelineJobs", {"pipelineJobId": "j"}, {"displayName": "x", "labels": {"a_b": "c"}}),
    ),
    (f"{PIPELINES}/CancelPipelineJob", {"name": JOB}, ("POST", f"/v1/{JOB}:cancel", {}, {})),
    (
        f"{SCHEDULES}/UpdateSchedule",
        {"schedule": {"name": f"{PARENT}/schedules/s", "cron": "* * * * *"}, "update_mask": {"paths": ["cron"]}},
        (
            "PATCH",
            f"/v1/{PARENT}/schedules/s",
            {"updateMask": "cron"},
            {"cron": "* * * * *"},
        ),
    ),
    (
        f"{SCHEDULES}/ResumeSchedule",
        {"name": f"{PARENT}/schedules/s", "catch_up": True},
        ("POST", f"/v1/{PARENT}/schedules/s:resume", {}, {"catchUp": True}),
    ),
]


def test_a_call_is_the_request_that_rest_has(tmp_path: Path) -> None:
    app = App()

    async def use(client: grpc.aio.Channel) -> None:
        for path, fields, expected in CALLS:
            assert await client.unary_unary(path)(message(path, **fields)) == b""
            assert app.requests.pop() == expected

    with_server(tmp_path, app, use)


def test_errors_have_the_status_and_the_sentence_of_rest(tmp_path: Path) -> None:
    app, path = App(), f"{PIPELINES}/GetPipelineJob"

    async def use(client: grpc.aio.Channel) -> None:
        async def error() -> grpc.aio.AioRpcError:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await client.unary_unary(path)(message(path, name=JOB))
            return caught.value

        for status in Status:
            app.response = JsonResponse(
                error_body(status.http_code, status.name, "what is wrong: ü\n%"), status.http_code
            )
            found = await error()
            assert (found.code().name, found.code().value[0]) == (status.name, status.number)
            assert found.details() == "what is wrong: ü\n%"
        # Clients drop a connection whose trailers are larger than 8 KiB.
        for long in ("a" * 100_000, "ü" * 100_000):
            app.response = JsonResponse(error_body(400, "INVALID_ARGUMENT", long), 400)
            found = await error()
            assert found.code() is grpc.StatusCode.INVALID_ARGUMENT
            assert long.startswith(str(found.details()).removesuffix("..."))
        app.response = Response("<html>", 502)
        assert (await error()).code() is grpc.StatusCode.INTERNAL
        app.response = JsonResponse({"labels": 3})
        assert "cannot be sent over gRPC" in str((await error()).details())

    with_server(tmp_path, app, use)


@pytest.mark.parametrize(
    ("path", "data", "code"),
    [
        (f"{PIPELINES}/GetPipelineJob", b"\xff\xff", "INVALID_ARGUMENT"),
        (f"{PIPELINES}/GetPipelineJob", b"", "INVALID_ARGUMENT"),
        (f"{PIPELINES}/DeletePipelineJob", b"\x0a\x01x", "INVALID_ARGUMENT"),
        (f"{PIPELINES}/Absent", b"", "UNIMPLEMENTED"),
        ("/google.cloud.aiplatform.v9.PipelineService/GetPipelineJob", b"", "UNIMPLEMENTED"),
        ("/google.cloud.aiplatform.v1.os/path", b"", "UNIMPLEMENTED"),
        (f"{PIPELINES}/Kind", b"", "UNIMPLEMENTED"),
        (f"{PIPELINES}/GrpcChannel", b"", "UNIMPLEMENTED"),
        (f"{PIPELINES}/DeleteOperation", b"", "UNIMPLEMENTED"),
        ("/google.longrunning.Operations/GetOperation", b"", "UNIMPLEMENTED"),
        ("/", b"", "UNIMPLEMENTED"),
    ],
)
def test_what_is_no_call_reaches_nothing(path: str, data: bytes, code: str, tmp_path: Path) -> None:
    app = App()

    async def use(client: grpc.aio.Channel) -> None:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.unary_unary(path)(data)
        assert caught.value.code().name == code

    with_server(tmp_path, app, use)
    assert app.requests == []


@pytest.mark.parametrize(
    ("metadata", "place"),
    [
        ({"_metrics": {"good": 1, "loss": math.nan}}, "metadata._metrics.loss is nan"),
        ({"rows": [{"values": [1, -math.inf]}]}, "metadata.rows.0.values.1 is -inf"),
    ],
)
def test_a_number_that_json_has_not_is_refused_by_its_name(metadata: Any, place: str) -> None:
    path = "/google.cloud.aiplatform.v1.MetadataService/UpdateContext"
    method = methods.find(path)
    assert method is not None
    data = message(path, context={"name": f"{PARENT}/metadataStores/default/contexts/c", "metadata": metadata})
    with pytest.raises(ApiError) as caught:
        method.http_request(data)
    assert str(caught.value).endswith(f"{place}; expected a finite number")
    assert caught.value.status is Status.INVALID_ARGUMENT


def test_half_of_a_call_is_refused_after_a_time_and_does_nothing(tmp_path: Path) -> None:
    app, path = App(), f"{PIPELINES}/CancelPipelineJob"

    async def use(client: grpc.aio.Channel) -> None:
        for parts in ([], [message(path, name=JOB)]):
            call = client.stream_unary(path)()
            for part in parts:
                with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):  # it may be refused by now
                    await call.write(part)
            # The end of the request never comes.
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call
            assert caught.value.code() is grpc.StatusCode.CANCELLED
            assert "nothing was done" in str(caught.value.details())

    with_server(tmp_path, app, use, seconds=0.3)
    assert app.requests == []


def test_a_call_that_is_cut_off_or_sends_two_messages_does_nothing(tmp_path: Path) -> None:
    app, path = App(), f"{PIPELINES}/CancelPipelineJob"

    async def use(client: grpc.aio.Channel) -> None:
        half = client.stream_unary(path)()
        await half.write(message(path, name=JOB))
        half.cancel()
        two = client.stream_unary(path)()
        for _ in range(2):
            with contextlib.suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):  # it may be refused by now
                await two.write(message(path, name=JOB))
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await two
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
        assert app.requests == []
        await client.unary_unary(path)(message(path, name=JOB))

    with_server(tmp_path, app, use)
    assert len(app.requests) == 1


def test_a_call_past_its_deadline_leaves_the_server_answering(tmp_path: Path) -> None:
    path = f"{PIPELINES}/CancelPipelineJob"
    started, released = asyncio.Event(), asyncio.Event()

    class Slow(App):
        async def _respond(self, request: Request) -> Response:
            started.set()
            await released.wait()
            return await super()._respond(request)

    app = Slow()

    async def use(client: grpc.aio.Channel) -> None:
        slow = client.unary_unary(path)(message(path, name=JOB))
        await started.wait()
        slow.cancel()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.unary_unary(path)(message(path, name=JOB), timeout=0.2)
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        released.set()
        await client.unary_unary(path)(message(path, name=JOB))

    with_server(tmp_path, app, use)


def test_a_defect_of_the_application_is_an_internal_error(tmp_path: Path) -> None:
    app, path = App(RuntimeError("broken")), f"{PIPELINES}/GetPipelineJob"

    async def use(client: grpc.aio.Channel) -> None:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.unary_unary(path)(message(path, name=JOB))
        assert caught.value.code() is grpc.StatusCode.INTERNAL

    with_server(tmp_path, app, use)


def test_the_application_gets_the_authorization_and_no_other_metadata(tmp_path: Path) -> None:
    app, path = App(), f"{PIPELINES}/GetPipelineJob"

    async def use(client: grpc.aio.Channel) -> None:
        sent = [
            ("authorization", "Bearer x"),
            ("x-goog-request-params", "name=other"),
            ("host", "evil"),
            ("cookie", "c"),
        ]
        await client.unary_unary(path)(message(path, name=JOB), metadata=sent)

    with_server(tmp_path, app, use)
    (headers,) = app.headers
    assert headers == {
        "host": "localhost",
        "authorization": "Bearer x",
        "content-type": "application/json",
        "content-length": "0",
    }


def test_nothing_of_a_stranger_is_read_and_the_application_refuses_it(tmp_path: Path) -> None:
    app, path, sentence = App(), f"{PIPELINES}/CancelPipelineJob", "send the token"
    app.response = JsonResponse(error_body(403, "PERMISSION_DENIED", sentence), 403)

    async def use(client: grpc.aio.Channel) -> None:
        for header in ("Bearer other", "Basic %00", ""):
            # The request never ends, so this call would wait if it were read.
            call = client.stream_unary(path)(metadata=[("authorization", header)])
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call
            assert (caught.value.code(), caught.value.details()) == (grpc.StatusCode.PERMISSION_DENIED, sentence)
        app.response = JsonResponse({})
        await client.unary_unary(path)(message(path, name=JOB), metadata=[("authorization", "Bearer mine")])

    with_server(tmp_path, app, use, allows=lambda header: header == "Bearer mine")
    assert [(method, http_path) for method, http_path, _, _ in app.requests] == [
        *[("GET", "/v1")] * 3,
        ("POST", f"/v1/{JOB}:cancel"),
    ]


def test_compressed_and_oversized_messages_are_refused_before_they_are_read(tmp_path: Path) -> None:
    app, path = App(), f"{PIPELINES}/GetPipelineJob"

    async def use(client: grpc.aio.Channel) -> None:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.unary_unary(path)(b"\x0a" + b"x" * (23 << 20))
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await client.unary_unary(path)(b"x" * 1000, compression=grpc.Compression.Gzip)
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED

    with_server(tmp_path, app, use)
    assert app.requests == []
