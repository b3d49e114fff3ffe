"""`localvertex serve` as a process: one socket on the loopback interface."""

import asyncio
from contextlib import suppress

import uvicorn

from localvertex.engine import Options
from localvertex.serve.app import application
from localvertex.serve.connection import HOST, REQUEST_SECONDS, Connection, listen
from localvertex.serve.rpc.server import RpcServer
from localvertex.serve.service import Service

_STARTED = """\
serving {work_dir} at {url}
  aiplatform.init(project="local-project", location="us-central1", api_endpoint="{url}", api_transport="rest",
                  credentials=google.auth.credentials.AnonymousCredentials())"""


def serve(options: Options, *, port: int, grpc_port: int | None, time_factor: float) -> None:
    """Serve until SIGINT or SIGTERM, and stop what runs before returning.

    Args:
        options: How to run the jobs that it receives, in which work directory.
        port: The port; 0 for a free one.
        grpc_port: The port for gRPC; 0 for a free one, None for the one after `port` or a free one.
        time_factor: Speed-up of the schedule clock.

    Raises:
        UserError: The port or the work directory is in use.
    """

    def log(text: str) -> None:
        # A single write per line, because several threads log.
        with suppress(OSError):  # the terminal is gone, or the disk with the log is full
            print(text + "\n", end="", flush=True)

    service = Service(options.work_dir.absolute(), time_factor=time_factor, log=log, options=options)
    service.hold()
    with listen("--port", port) as listener:
        rpc = RpcServer(options.work_dir.absolute() / "api" / "grpc", log, seconds=REQUEST_SECONDS)
        config = uvicorn.Config(
            application(service, rpc.serving),
            http=Connection,
            lifespan="on",
            log_level="warning",
            access_log=False,
            server_header=False,
        )
        url = f"http://{HOST}:{listener.getsockname()[1]}"
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            clients = runner.run(rpc.bind(grpc_port, rest_port=port))
            log(f"{_STARTED.format(work_dir=options.work_dir, url=url)}\n{clients}")
            runner.run(uvicorn.Server(config).serve(sockets=[listener]))
