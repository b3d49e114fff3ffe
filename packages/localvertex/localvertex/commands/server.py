"""`localvertex serve` as a process: one socket on the loopback interface."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import uvicorn

from localvertex._base.userinput.errors import UserError
from localvertex.api.access import session, token_file
from localvertex.api.access.access import Access
from localvertex.api.access.step_access import StepAccess
from localvertex.api.app import application
from localvertex.api.connection import BACKLOG, HOST, REQUEST_SECONDS, Connection, listen
from localvertex.api.rpc.server import RpcServer
from localvertex.api.steps.reach import Reach
from localvertex.commands.service import Service
from localvertex.runner.engine import Options
from localvertex.store import run_folder

_DEFAULT_PORT = 8700

_STARTED = """\
serving {work_dir} at {url}
  in a program: localvertex.client.init({work_dir!r})
  in a browser: {page}"""


def serve(
    options: Options,
    *,
    port: int | None,
    time_factor: float,
    max_runs: int,
    when_started: Callable[[str], object] = lambda _: None,
) -> None:
    """Serve until SIGINT or SIGTERM, and stop what runs before returning.

    Args:
        options: How to run the jobs that it receives, in which work folder.
        port: The port; 0 for a free one, None for the default or a free one.
        time_factor: Speed-up of the schedule clock.
        max_runs: How many pipeline runs it executes at once; the others wait.
        when_started: Called with the address of the server.

    Raises:
        UserError: The port or the work folder is in use.
    """

    def log(text: str) -> None:
        # A single write per line, because several threads log.
        with suppress(OSError):  # the terminal is gone, or the disk with the log is full
            print(text + "\n", end="", flush=True)

    work_dir = options.work_dir.absolute()
    steps = StepAccess()
    service = Service(
        work_dir, time_factor=time_factor, log=log, options=replace(options, server=Reach(steps)), max_runs=max_runs
    )
    service.hold()
    if run_folder.is_open_to_others(work_dir):
        log(f"warning: other users of this machine can open {work_dir}; to prevent it: chmod 700 {work_dir}")
    if foreign := run_folder.of_other_user(work_dir):
        log(f"warning: {foreign} belongs to another user, who can run code as you; use a work folder of your own")
    token = token_file.prepare(work_dir, log)
    access = Access(token, steps=steps)
    with _listen(port) as listener:
        rpc = RpcServer(work_dir / "api" / "grpc", log, seconds=REQUEST_SECONDS, allows=access.allows)
        config = uvicorn.Config(
            application(service, access, rpc.serve),
            http=Connection,
            backlog=BACKLOG,
            lifespan="on",
            log_level="warning",
            access_log=False,
            server_header=False,
            # By default a header of any local client decides which connection a request is from.
            proxy_headers=False,
        )
        number = listener.getsockname()[1]
        url = f"http://{HOST}:{number}"
        steps.listens_at(url)
        started = _STARTED.format(
            work_dir=str(options.work_dir), url=url, page=session.printed_address(url, token, options.work_dir)
        )
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            clients = runner.run(rpc.bind(number))
            token_file.publish(work_dir, url, rpc.address)
            log(f"{started}\n{clients}")
            when_started(url)
            runner.run(_HttpServer(config, service).serve(sockets=[listener]))


def _listen(port: int | None) -> socket.socket:
    """Open the port.

    Raises:
        UserError: The given port cannot be used.
    """
    if port is None:
        with suppress(UserError):
            return listen("--port", _DEFAULT_PORT)
    return listen("--port", port or 0)


class _HttpServer(uvicorn.Server):
    """Ends the requests that wait for deployed models first: their processes may take minutes to become healthy."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for the other requests, and stop everything that runs."""
        self._service.stop_deployments()
        await super().shutdown(sockets)
