"""`localvertex serve` as a process: one socket on the loopback interface."""

import socket
from pathlib import Path

import uvicorn

from localvertex.containers.options import ContainerOptions
from localvertex.runner.options import check_gcs_root
from localvertex.serve.app import application
from localvertex.serve.service import Service
from userinput.errors import UserError

_HOST = "127.0.0.1"

_STARTED = """\
serving {work_dir} at {url}
  aiplatform.init(project="local-project", location="us-central1", api_endpoint="{url}", api_transport="rest",
                  credentials=google.auth.credentials.AnonymousCredentials())"""


def _listen(port: int) -> socket.socket:
    """Open the socket; port 0 takes a free one.

    Raises:
        UserError: The port is in use or out of range.
    """
    try:
        return socket.create_server((_HOST, port))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"--port {port}: {reason}; choose another port, or 0 for a free one") from None


def serve(
    work_dir: Path, *, port: int, time_factor: float, containers: ContainerOptions, gcs_root: Path | None = None
) -> None:
    """Serve until SIGINT or SIGTERM, and stop what runs before returning.

    Raises:
        UserError: The port or the work directory is in use, or there is no folder of buckets.
    """

    def log(text: str) -> None:
        # A single write per line, because several threads log.
        print(text + "\n", end="", flush=True)

    if gcs_root is not None:
        check_gcs_root(gcs_root, work_dir)
    service = Service(work_dir.absolute(), time_factor=time_factor, log=log, containers=containers, gcs_root=gcs_root)
    service.hold()
    with _listen(port) as listener:
        config = uvicorn.Config(
            application(service), lifespan="on", log_level="warning", access_log=False, server_header=False
        )
        url = f"http://{_HOST}:{listener.getsockname()[1]}"
        log(_STARTED.format(work_dir=work_dir, url=url))
        uvicorn.Server(config).run(sockets=[listener])
