"""Points google-cloud-aiplatform at a `localvertex serve`: `client.init("runs")` in place of `aiplatform.init(...)`."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from google.auth import credentials, exceptions
from requests.utils import get_environ_proxies

from localvertex.api.access import token_file
from localvertex.processes.network import sockets
from localvertex_base.userinput import step_endpoint
from localvertex_base.userinput.errors import UserError

_GOOGLES = "aiplatform.googleapis.com"
"""The end of Vertex AI's host names; `Endpoint.raw_predict` calls them regardless of the address of `init`."""


def init(
    work_dir: str | os.PathLike[str] | None = None,
    *,
    project: str = "local-project",
    location: str = "us-central1",
    **options: Any,
) -> None:
    """Call `aiplatform.init` with the address and the token of the server of a work folder, or of a step's run.

    Args:
        work_dir: The work folder of the server; None in a step, for the registry that the step reaches.
        project: Any project id.
        location: Any region.
        **options: Other arguments of `aiplatform.init`.

    Raises:
        UserError: No server has used the work folder, or this is not a step of a local run.
    """
    from google.cloud import aiplatform

    address, found = _of_step() if work_dir is None else _of_server(Path(work_dir).absolute())
    values = {"api_endpoint": address, "api_transport": "rest", "credentials": found, **options}
    aiplatform.init(project=project, location=location, **values)


def _of_step() -> tuple[str, credentials.Credentials]:
    found = step_endpoint.find()
    if found is None:
        raise UserError("not in a step of a local run: call localvertex.client.init(WORK_DIR) with a work folder")
    return found.address, step_endpoint.credentials(found)


def _of_server(folder: Path) -> tuple[str, credentials.Credentials]:
    address = token_file.address(folder)
    if not address:
        raise UserError(f"{folder} has no server: start `python -m localvertex serve --work-dir {folder}` first")
    return address, Credentials(folder)


class Credentials(credentials.Credentials):
    """The token of a work folder, read again for each request, and sent only to a server of its owner.

    Args:
        work_dir: The work folder of the server.
    """

    def __init__(self, work_dir: str | os.PathLike[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._work_dir = Path(work_dir).absolute()

    def refresh(self, request: Any) -> None:
        """Read the token; there is none before the first start of a server.

        Raises:
            RefreshError: Others may know the token.
        """
        try:
            self.token = token_file.read(self._work_dir) or None
        except token_file.Unusable as error:
            file = token_file.path(self._work_dir)
            message = f"{file} {error}; restart `python -m localvertex serve`, which replaces it"
            raise exceptions.RefreshError(message) from None  # type: ignore[no-untyped-call]

    def before_request(self, request: Any, method: str, url: str, headers: Any) -> None:
        """Add the token to a request to this machine.

        The SDK uses the same credentials for Cloud Storage, and the server may have ended and another user have taken
        its port. Both get no token. A call of Vertex AI itself is refused, because it may contain data.

        Raises:
            RefreshError: The request leads to Google, or through a proxy, or others may know the token.
        """
        parts = urlsplit(url)
        if (parts.hostname or "").endswith(_GOOGLES):
            text = "the SDK sends this call to Google, not to the local server; nothing was sent: "
            raise exceptions.RefreshError(f"{text}{url[:200]}")  # type: ignore[no-untyped-call]
        if parts.hostname in ("127.0.0.1", "localhost", "::1") and sockets.are_own(parts.port or 0):
            if get_environ_proxies(url):
                text = "a proxy would get the token; add 127.0.0.1 and localhost to the variable NO_PROXY"
                raise exceptions.RefreshError(text)  # type: ignore[no-untyped-call]
            self.refresh(request)
            if self.token:
                self.apply(headers)  # type: ignore[no-untyped-call]
