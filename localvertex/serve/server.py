"""`localvertex serve`: one process, one socket on the loopback interface."""

import socket
from pathlib import Path

import uvicorn

from localvertex.serve.app import application
from localvertex.serve.service import Service
from userinput.errors import UserError

HOST = "127.0.0.1"

STARTED = """\
localvertex serves {work_dir} on {url}
  aiplatform.init(project="local-project", location="us-central1", api_endpoint="{url}", api_transport="rest",
                  credentials=google.auth.credentials.AnonymousCredentials())"""


def listen(port: int) -> socket.socket:
    """The socket; port 0 for a free one.

    Raises:
        UserError: it is taken.
    """
    try:
        return socket.create_server((HOST, port))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserError(f"--port {port}: {reason}; choose another, 0 takes a free one") from None


def serve(work_dir: Path, *, port: int, time_factor: float) -> None:
    """Serves until SIGINT or SIGTERM; what runs then is stopped first.

    Raises:
        UserError: the port or the work directory is in use.
    """

    def say(text: str) -> None:
        # One write for text and line end: several threads speak.
        print(text + "\n", end="", flush=True)

    service = Service(work_dir.absolute(), time_factor=time_factor, say=say)
    service.hold()
    with listen(port) as listener:
        config = uvicorn.Config(
            application(service), lifespan="on", log_level="warning", access_log=False, server_header=False
        )
        url = f"http://{HOST}:{listener.getsockname()[1]}"
        say(STARTED.format(work_dir=work_dir, url=url))
        uvicorn.Server(config).run(sockets=[listener])
