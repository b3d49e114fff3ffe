"""The gRPC server: TLS on the loopback interface."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import grpc.aio
from starlette.types import ASGIApp

from localvertex._base.lines import WriteLine
from localvertex._base.userinput.errors import UserError
from localvertex.api.connection import HOST, MAX_CONNECTIONS, listen
from localvertex.api.rest.guard import MAX_BODY_BYTES
from localvertex.api.rpc import certificate
from localvertex.api.rpc.calls import Allows, Calls

_OPTIONS = {
    # Another server on the same port would take half of the connections.
    "grpc.so_reuseport": 0,
    "grpc.max_receive_message_length": MAX_BODY_BYTES,
    "grpc.max_concurrent_streams": 100,
    "grpc.max_allowed_incoming_connections": MAX_CONNECTIONS,
    "grpc.server_handshake_timeout_ms": 30_000,
    "grpc.max_connection_idle_ms": 300_000,
    # Identity only: a small compressed message could fill the memory.
    "grpc.compression_enabled_algorithms_bitset": 1,
}

_STOP_SECONDS = 2.0
"""Time for calls that are being answered when the server is stopped."""


class RpcServer:
    """Answers gRPC calls; `bind` comes first, and `serve` is entered in the same event loop.

    Args:
        folder: Folder of the certificate.
        log: Called when the certificate is replaced.
        seconds: How long a request may take to arrive.
        allows: Whether a call with this `authorization` may be carried out.
    """

    def __init__(self, folder: Path, log: WriteLine, *, seconds: float, allows: Allows = lambda _: True) -> None:
        self._folder, self._log, self._seconds, self._allows = folder, log, seconds, allows
        self._server: grpc.aio.Server | None = None
        self.address = ""
        """The address for clients; empty if gRPC is off."""

    async def bind(self, rest_port: int) -> str:
        """Open the port after REST's or a free one, and return the line that explains how clients use it."""
        reason = ""
        for port in (rest_port + 1, 0):
            try:
                # grpc names no reason when it cannot open a port.
                listen("gRPC", port).close()
                return self._bind(port)
            except OSError as error:
                reason = f"the gRPC certificate in {self._folder} cannot be used: {error.strerror}"
            except (UserError, RuntimeError) as error:
                reason = str(error)
        # REST works without it.
        return f"  gRPC is off: {reason}"

    def _bind(self, port: int) -> str:
        made = certificate.load(self._folder, self._log)
        server = grpc.aio.server(options=list(_OPTIONS.items()))
        credentials = grpc.ssl_server_credentials([(made.private_key, made.chain)])
        number = server.add_secure_port(f"{HOST}:{port}", credentials)
        self._server, self.address = server, f"localhost:{number}"
        return f'  gRPC: api_endpoint="{self.address}" with GRPC_DEFAULT_SSL_ROOTS_FILE_PATH={made.roots}'

    @asynccontextmanager
    async def serve(self, app: ASGIApp) -> AsyncIterator[None]:
        """Answer calls with the application that answers REST."""
        if self._server is None:
            yield
            return
        self._server.add_generic_rpc_handlers((Calls(app, allows=self._allows, seconds=self._seconds),))
        await self._server.start()
        try:
            yield
        finally:
            await self._server.stop(_STOP_SECONDS)
