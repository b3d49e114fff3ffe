"""The server as a process: listens at once, loads the model beside, and drains on SIGTERM."""

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn

from localvertex._base.userinput.errors import UserError
from trainer.serve.app import Serving, application
from trainer.serve.batches import MAX_IMAGES, Batches
from trainer.serve.contract import Contract

if TYPE_CHECKING:
    from trainer.results.saved_model import LoadedModel

_MAX_PIXELS = 2**26
"""Pixels of all images in one call of the model."""
_DRAIN_SECONDS = 25
"""Time for the last predictions; the service kills a container 30 seconds after SIGTERM."""


class _Server(uvicorn.Server):
    """uvicorn's server, which ends without an error after a signal, when the last request is answered."""

    def __init__(self, config: uvicorn.Config, serving: Serving) -> None:
        super().__init__(config)
        self._serving = serving

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Refuse further requests; a second Ctrl-C does not wait for the others."""
        if self._serving.is_draining and sig == signal.SIGINT:
            self.should_exit = self.force_exit = True
        self._serving.is_draining = True

    async def on_tick(self, counter: int) -> bool:
        """Return whether the server ends now."""
        if self._serving.is_draining and not self._serving.num_requests:
            self.should_exit = True
        return await super().on_tick(counter)


def serve(contract: Contract, load: Callable[[], "LoadedModel"], *, max_images: int = MAX_IMAGES) -> None:
    """Serve until SIGTERM or SIGINT, and answer the requests that wait.

    Args:
        contract: Where to listen.
        load: Returns the model; called in another thread.
        max_images: Largest number of images in one call of the model.

    Raises:
        UserError: The port is in use, or the model cannot be loaded.
    """
    serving = Serving()
    with _listen(contract) as listener:
        config = uvicorn.Config(
            application(serving, contract),
            http="h11",
            ws="none",
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_DRAIN_SECONDS,
        )
        server = _Server(config, serving)
        failures: list[BaseException] = []

        def prepare() -> None:
            try:
                model = load()
                fitting = max(1, min(max_images, _MAX_PIXELS // model.image_size**2))
                serving.loaded = model, Batches(model.predict, max_images=fitting)
                print("ready", flush=True)
            except BaseException as error:
                failures.append(error)
                server.should_exit = True

        print(f"listening on http://{contract.host}:{listener.getsockname()[1]}", flush=True)
        loader = threading.Thread(target=prepare, name="load", daemon=True)
        loader.start()
        asyncio.run(server.serve(sockets=[listener]))
        if failures:
            raise failures[0]
        if loader.is_alive():
            # Python cannot end while TensorFlow is imported.
            os._exit(0)


def _listen(contract: Contract) -> socket.socket:
    try:
        listener = socket.create_server((contract.host, contract.port), backlog=512)
    except OSError as error:
        address = f"{contract.host}:{contract.port}"
        raise UserError(f"cannot listen on {address}: {error.strerror}; choose another port, or 0 for any") from None
    # asyncio sets it only for sockets that it opens; without it, answers on open connections wait for 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
