"""Answers on open connections leave at once: without TCP_NODELAY each waits 40 ms for the client's acknowledgement."""

import asyncio
import socket

import uvicorn
from starlette.applications import Starlette
from uvicorn.server import ServerState

from localvertex.api.connection import Connection, listen


async def option() -> int:
    """The option of a connection that the server has accepted."""
    config = uvicorn.Config(Starlette(), http=Connection, lifespan="off")
    config.load()
    made: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    class Seen(Connection):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            made.set_result(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    def protocol() -> Seen:
        return Seen(config=config, server_state=ServerState(), app_state={})

    with listen("--port", 0) as listener:
        server = await asyncio.get_running_loop().create_server(protocol, sock=listener)
        async with server:
            _, writer = await asyncio.open_connection(*listener.getsockname())
            found = await made
            writer.close()
            await writer.wait_closed()
            return found


def test_the_server_does_not_wait_for_acknowledgements() -> None:
    assert asyncio.run(option())
