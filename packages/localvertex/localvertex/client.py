"""Points google-cloud-aiplatform at a `localvertex serve`: `client.init("runs")` in place of `aiplatform.init(...)`."""

import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from google.auth import credentials, exceptions
from google.auth.transport.requests import AuthorizedSession
from requests.utils import get_environ_proxies

from localvertex._base import step_endpoint
from localvertex._base.json_object import JsonObject
from localvertex._base.userinput import atomic_write
from localvertex._base.userinput.errors import UserError
from localvertex.api.access import token_file
from localvertex.processes.network import sockets
from localvertex.values.buckets import PROJECT_NUMBER

_GOOGLES = "aiplatform.googleapis.com"
"""The end of Vertex AI's host names; `Endpoint.raw_predict` calls them regardless of the address of `init`."""

_ROOTS = "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"

_CONNECT_SECONDS = 10.0


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
        **options: Other arguments of `aiplatform.init`. `api_transport` is "grpc" by default, as the SDK's, or "rest";
            in a step, and for a server without gRPC, it is "rest". A server creates the `staging_bucket`.

    Raises:
        UserError: No server has used the work folder, this is not a step of a local run, or gRPC cannot be used.
    """
    from google.cloud import aiplatform

    _answer_project_numbers()
    _fit_address_to_transport()
    values = _of_step() if work_dir is None else _of_server(Path(work_dir).absolute(), options.get("api_transport"))
    aiplatform.init(project=project, location=location, **values | options)
    if work_dir is not None and (bucket := options.get("staging_bucket")):
        _create_bucket(Path(work_dir).absolute(), bucket.removeprefix("gs://").partition("/")[0])


def _create_bucket(folder: Path, name: str) -> None:
    """Create a bucket if it does not exist, as a project's staging bucket does; the first upload reports a failure."""
    with suppress(OSError, exceptions.GoogleAuthError), AuthorizedSession(Credentials(folder)) as session:  # type: ignore[no-untyped-call]
        session.post(f"{token_file.address(folder)}/storage/v1/b", json={"name": name}, timeout=_CONNECT_SECONDS)


def _of_step() -> JsonObject:
    found = step_endpoint.find()
    if found is None:
        raise UserError("not in a step of a local run: call localvertex.client.init(WORK_DIR) with a work folder")
    return {"api_endpoint": found.address, "api_transport": "rest", "credentials": step_endpoint.credentials(found)}


def _of_server(folder: Path, transport: str | None) -> JsonObject:
    address, grpc_address = token_file.address(folder), token_file.grpc_address(folder)
    if not address:
        raise UserError(f"{folder} has no server: start `python -m localvertex serve --work-dir {folder}` first")
    if transport == "rest" or (transport is None and not grpc_address):
        return {"api_endpoint": address, "api_transport": "rest", "credentials": Credentials(folder)}
    if not grpc_address:
        raise UserError(f"the server of {folder} has no gRPC, see what it printed; pass api_transport='rest'")
    _trust(folder, grpc_address)
    return {"api_endpoint": grpc_address, "api_transport": "grpc", "credentials": Credentials(folder)}


def _trust(folder: Path, address: str) -> None:
    """Let gRPC trust the server's certificate; it reads its roots at the first connection of a process.

    Raises:
        UserError: It has read others, or the server does not answer.
    """
    import grpc

    roots = token_file.roots(folder)
    present = Path(os.environ.get(_ROOTS) or roots)
    # A program that was started by one with another server has the variable of that server.
    if present.parts[-3:] != roots.parts[-3:]:
        both = roots.with_name("roots-and-yours.pem")
        with suppress(OSError):
            # Those of an earlier call may have the server's already.
            yours, ours = present.read_bytes(), roots.read_bytes()
            atomic_write.write_all({both: yours if ours in yours else yours + b"\n" + ours})
            roots = both
    os.environ[_ROOTS] = str(roots)
    with grpc.secure_channel(address, grpc.ssl_channel_credentials()) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=_CONNECT_SECONDS)
        except grpc.FutureTimeoutError:
            text = f"no gRPC connection to {address}: the server has ended, a proxy is set (see docs/grpc.md), or"
            advice = "call localvertex.client.init before other connections, or pass api_transport='rest'"
            raise UserError(f"{text} this program has other roots: {advice}") from None


@cache
def _answer_project_numbers() -> None:
    """Let the SDK find the number of a local project here, which it compares with a bucket's; it would ask Google."""
    from google.cloud.aiplatform import initializer
    from google.cloud.aiplatform.utils import resource_manager_utils

    ask_google = resource_manager_utils.get_project_number

    def get_project_number(project_id: str, credentials: Any = None) -> str:
        found = credentials or initializer.global_config.credentials
        return PROJECT_NUMBER if isinstance(found, Credentials) else str(ask_google(project_id, credentials))

    resource_manager_utils.get_project_number = get_project_number


@cache
def _fit_address_to_transport() -> None:
    """Let the SDK find the server after it has changed to REST, for which Vertex AI's address is the same as for gRPC.

    `aiplatform.init` without `project`, such as `aiplatform.init(experiment="digits")`, changes to REST.
    """
    from google.cloud.aiplatform import initializer

    config: Any = type(initializer.global_config)
    given = config.api_endpoint.fget

    def api_endpoint(self: Any) -> str | None:
        address: str | None = given(self)
        if self._api_transport == "rest" and isinstance(self._credentials, Credentials):
            return self._credentials.rest_address(address)
        return address

    config.api_endpoint = property(api_endpoint)


class Credentials(credentials.Credentials):
    """The token of a work folder, read again for each request, and sent only to a server of its owner.

    Args:
        work_dir: The work folder of the server.
    """

    def __init__(self, work_dir: str | os.PathLike[str]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._work_dir = Path(work_dir).absolute()

    def rest_address(self, address: str | None) -> str | None:
        """Return the address for REST in place of the server's address for gRPC; others stay."""
        is_grpc = address and address == token_file.grpc_address(self._work_dir)
        return token_file.address(self._work_dir) if is_grpc else address

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
