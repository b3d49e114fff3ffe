"""`localvertex serve` as a process: one socket on the loopback interface."""

import socket
import sys
from contextlib import suppress
from pathlib import Path

import uvicorn

from localvertex.engine import Options
from localvertex.serve.access import open_page, token_file
from localvertex.serve.access.access import Access
from localvertex.serve.app import application
from localvertex.serve.connection import Connection
from localvertex.serve.service import Service
from localvertex.state import run_folder
from userinput.errors import UserError

_HOST = "127.0.0.1"

_STARTED = """\
serving {work_dir} at {url}
  in a program: localvertex.client.init({work_dir!r})
  in a browser: {page}"""

_OPEN_TO_ALL = "warning: --no-token: every user of this machine can call this server and run code as you"


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


def serve(options: Options, *, port: int, time_factor: float, needs_token: bool = True) -> None:
    """Serve until SIGINT or SIGTERM, and stop what runs before returning.

    Args:
        options: How to run the jobs that it receives, in which work directory.
        port: The port; 0 for a free one.
        time_factor: Speed-up of the schedule clock.
        needs_token: Whether each call needs the token of the work directory.

    Raises:
        UserError: The port or the work directory is in use.
    """

    def log(text: str) -> None:
        # A single write per line, because several threads log.
        with suppress(OSError):  # the terminal is gone, or the disk with the log is full
            print(text + "\n", end="", flush=True)

    work_dir = options.work_dir.absolute()
    service = Service(work_dir, time_factor=time_factor, log=log, options=options)
    service.hold()
    if run_folder.is_open_to_others(work_dir):
        log(f"warning: other users of this machine can open {work_dir}; to prevent it: chmod 700 {work_dir}")
    token = token_file.prepare(work_dir, log) if needs_token else ""
    with _listen(port) as listener:
        config = uvicorn.Config(
            application(service, Access(token)),
            http=Connection,
            lifespan="on",
            log_level="warning",
            access_log=False,
            server_header=False,
        )
        url = f"http://{_HOST}:{listener.getsockname()[1]}"
        token_file.publish(work_dir, url)
        log(_STARTED.format(work_dir=str(options.work_dir), url=url, page=_page(url, token, options.work_dir)))
        if not needs_token:
            log(_OPEN_TO_ALL)
        uvicorn.Server(config).run(sockets=[listener])


def _page(url: str, token: str, work_dir: Path) -> str:
    """Return the address for a browser; it contains the token only on a terminal, because a log is kept."""
    if not token:
        return f"{url}/"
    if sys.stdout.isatty():
        return open_page.address(url, token)
    return f"{open_page.address(url, 'TOKEN')}, with the text of {token_file.path(work_dir)} as TOKEN"
