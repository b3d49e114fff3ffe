"""The process that serves gRPC: its ports, whom it answers, and that it stays up."""

import asyncio
import contextlib
import signal
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import grpc
import psutil
import pytest
from localvertex_tests.api.rpc.clients import LIST, endpoint, num_jobs
from starlette.applications import Starlette

from localvertex.api.rest import known_methods
from localvertex.api.rpc import methods
from localvertex.api.rpc.server import RpcServer
from vertex_testing.server import Server

SECRET = "ya29.a-token-of-google"


def ports(server: Server) -> set[tuple[str, int]]:
    """Return the addresses on which a server listens."""
    found = psutil.Process(server.process.pid).net_connections()
    return {(each.laddr.ip, each.laddr.port) for each in found if each.status == psutil.CONN_LISTEN}


def used_port() -> socket.socket:
    """Use a port whose predecessor is free."""
    while True:
        used = socket.create_server(("127.0.0.1", 0))
        try:
            socket.create_server(("127.0.0.1", used.getsockname()[1] - 1)).close()
        except OSError:
            used.close()
        else:
            return used


def number_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def test_a_call_is_answered_on_loopback_alone_and_no_token_is_kept(start_server: Callable[..., Server]) -> None:
    server = start_server()
    address, roots = endpoint(server)
    metadata = (("authorization", f"Bearer {SECRET}"),)
    for refused in (metadata, ()):
        with pytest.raises(grpc.RpcError) as caught:
            num_jobs(server, metadata=refused)
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
        assert "localvertex.client.init" in caught.value.details()
    listening = ports(server)
    assert {number for _, number in listening} == {number_of(address), number_of(server.url)}
    # grpc opens 127.0.0.1 as an address of IPv6 where it can.
    assert {ip.removeprefix("::ffff:") for ip, _ in listening} <= {"127.0.0.1", "::1"}
    assert num_jobs(server) == num_jobs(server, "127.0.0.1") == 0
    assert server.end() in (0, -signal.SIGTERM, 143)
    assert SECRET not in server.text
    written = [path for path in server.work_dir.rglob("*") if path.is_file()]
    assert Path(roots) in written
    assert [path for path in written if SECRET.encode() in path.read_bytes()] == []


@pytest.mark.slow
def test_clients_refuse_a_server_with_another_certificate(start_server: Callable[..., Server], tmp_path: Path) -> None:
    server = start_server()
    address, roots = endpoint(server)
    trusted = grpc.ssl_channel_credentials(Path(roots).read_bytes())
    named = [("grpc.ssl_target_name_override", "aiplatform.googleapis.com")]
    for credentials, options in ((grpc.ssl_channel_credentials(), []), (trusted, named)):
        with (
            grpc.secure_channel(address, credentials, options=options) as channel,
            pytest.raises(grpc.RpcError) as caught,
        ):
            channel.unary_unary(LIST)(b"", timeout=30)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_free_port_is_used_if_the_next_one_is_in_use(start_server: Callable[..., Server]) -> None:
    server, taken = start_before_used_port(start_server)
    assert number_of(endpoint(server)[0]) != taken
    assert num_jobs(server) == 0


def start_before_used_port(start_server: Callable[..., Server]) -> tuple[Server, int]:
    """Start a server on a port whose next one is in use; return that one, too."""
    while True:
        with used_port() as used:
            taken = used.getsockname()[1]
            try:
                return start_server("--port", str(taken - 1)), taken
            except AssertionError as error:
                # Another process may have been faster.
                assert "in use" in str(error)  # noqa: PT017


def test_the_default_port_is_the_next_one(tmp_path: Path) -> None:
    async def is_next() -> bool:
        with used_port() as used:
            port = used.getsockname()[1]
        return f':{port}"' in await RpcServer(tmp_path, pytest.fail, seconds=1).bind(port - 1)

    # Another process may take the port in between, but not each time.
    assert any(asyncio.run(is_next()) for _ in range(5))


def test_a_certificate_that_cannot_be_used_stops_only_grpc(tmp_path: Path) -> None:
    folder = tmp_path / "grpc"
    folder.write_text("not a folder")

    async def start() -> str:
        server = RpcServer(folder, pytest.fail, seconds=1)
        line = await server.bind(65535)
        async with server.serve(Starlette()):
            return line

    assert asyncio.run(start()) == f"  gRPC is off: the gRPC certificate in {folder} cannot be used: File exists"


@pytest.mark.slow
def test_connections_that_send_nothing_or_nonsense_leave_the_server_answering(
    start_server: Callable[..., Server],
) -> None:
    server = start_server()
    number = number_of(endpoint(server)[0])
    with contextlib.ExitStack() as opened:
        for index in range(300):
            client = opened.enter_context(socket.create_connection(("127.0.0.1", number)))
            if index % 3 == 1:
                client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            elif index % 3 == 2 and index < 100:
                context = ssl.create_default_context(cafile=endpoint(server)[1])
                context.set_alpn_protocols(["h2"])
                opened.enter_context(context.wrap_socket(client, server_hostname="localhost")).sendall(b"\x00" * 99)
        # As the SDK does, which tries again where a connection is closed before it is answered.
        assert num_jobs(server, wait_for_ready=True) == 0
        assert server.call("GET", "pipelineJobs").status_code == 200
        # It stops although half of a request is waiting.
        credentials = grpc.ssl_channel_credentials(Path(endpoint(server)[1]).read_bytes())
        channel = opened.enter_context(grpc.secure_channel(f"localhost:{number}", credentials))
        grpc.channel_ready_future(channel).result(30)
        server.end()
    assert "Traceback" not in server.text


@pytest.mark.slow
def test_every_method_of_vertex_ai_can_be_called() -> None:
    missing = []
    for known in known_methods.known_methods():
        service, _, name = known.name.partition(".")
        if not service.endswith("Service"):
            continue  # of another package
        method = methods.find(f"/google.cloud.aiplatform.v1.{service}/{name}")
        if method is None or not (method.bindings and method.request.DESCRIPTOR and method.response.DESCRIPTOR):
            missing.append(known.name)
    assert missing == []
