"""`localvertex console`: find the running server of a work folder, and open its address in the browser."""

import html
import threading
import time
import urllib.request
import webbrowser
from pathlib import Path
from urllib.error import URLError

from localvertex._base import linux
from localvertex._base.userinput import atomic_write
from localvertex._base.userinput.errors import UserError
from localvertex.api.access import session, token_file
from localvertex.processes.network import sockets
from localvertex.store import record

_QUESTION = "/v1/projects/local-project/locations/us-central1/schedules?pageSize=1"
"""A request that every server answers."""

_ANSWER_SECONDS = 30.0
"""A server that has just started has no address yet."""

_REDIRECT = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>localvertex</title>
<meta http-equiv="refresh" content="0;url={address}"></head>
<body><a href="{address}">Open the console</a></body></html>
"""


def use_running(work_dir: Path, *, opens_browser: bool) -> bool:
    """Show the console of the server that uses a work folder, and return whether there is one.

    Raises:
        UserError: The server does not answer.
    """
    url = _running(work_dir)
    if url:
        print(f"a running server uses {work_dir}; the options of this command have no effect on it")
        print(f"  in a browser: {session.printed_address(url, _token(work_dir), work_dir)}", flush=True)
        thread = open_in_browser(work_dir, url) if opens_browser else None
        if thread is not None:
            thread.join()
    return bool(url)


def _running(work_dir: Path) -> str:
    """Return the address of the server that uses a work folder, empty without a server.

    Raises:
        UserError: The server does not answer.
    """
    deadline = time.monotonic() + _ANSWER_SECONDS
    while record.is_running(work_dir / "api"):
        url = token_file.address(work_dir)
        if url and _answers(url, _token(work_dir)):
            return url
        if time.monotonic() > deadline:
            raise UserError(f"the server of {work_dir} does not answer; stop it and try again")
        time.sleep(0.1)
    return ""


def open_in_browser(work_dir: Path, url: str) -> threading.Thread | None:
    """Open the console in the user's browser, in a thread, because some browsers return when they end.

    Other users see the arguments of a browser. Hence it opens a file that only this user can read, which leads to the
    address with the token.

    Args:
        work_dir: The work folder of the server.
        url: Its address.
    """
    if linux.has_no_screen():
        return None
    page = work_dir.absolute() / "api" / "console.html"
    address = session.address(url, _token(work_dir))
    atomic_write.write_text(page, _REDIRECT.format(address=html.escape(address)), mode=0o600)
    thread = threading.Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True)
    thread.start()
    return thread


def _answers(url: str, token: str) -> bool:
    """Return whether a server of this user answers to a token."""
    if not sockets.are_own(int(url.rpartition(":")[2])):
        return False
    request = urllib.request.Request(url + _QUESTION, headers={"Authorization": f"Bearer {token}"})  # noqa: S310
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(request, timeout=_ANSWER_SECONDS):
            return True
    except (URLError, OSError):
        return False


def _token(work_dir: Path) -> str:
    """Return the token of a work folder, empty when there is none that only this user knows."""
    try:
        return token_file.read(work_dir)
    except token_file.Unusable:
        return ""
