"""The address and the token with which a step of a local run reaches the registry of its work folder.

`localvertex` writes them to a private file, which an environment variable of the step names.
"""

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from localvertex._base.userinput import regular_files
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import parse_json

VARIABLE = "LOCALVERTEX_ENDPOINT"
"""Environment variable with the path of the file."""

MARKER = "LOCALVERTEX_STEP"
"""A variable of each step and replica that localvertex runs: the folder of its log."""

IMAGES = "LOCALVERTEX_IMAGES"
"""A variable of each step: a JSON object, container image -> digest of the code that runs in its place."""

_MAX_BYTES = 2000

_ADDRESS = re.compile(r"http://127\.0\.0\.1:[1-9]\d{0,4}")
_TOKEN = re.compile(r"[A-Za-z0-9_-]{32,200}")


@dataclass(frozen=True, kw_only=True)
class StepEndpoint:
    """The endpoint to which a step sends its calls."""

    address: str
    """http://127.0.0.1:PORT."""
    token: str

    @property
    def port(self) -> int:
        """Return the port."""
        return urlsplit(self.address).port or 0


def is_local_step() -> bool:
    """Return whether localvertex runs this process as a step, or as a replica of one."""
    return VARIABLE in os.environ or MARKER in os.environ


def find() -> StepEndpoint | None:
    """Return the endpoint that the environment names; None if it names none.

    Raises:
        UserError: The file does not exist, others may know it, or it is damaged.
    """
    name = os.environ.get(VARIABLE, "")
    if not name:
        return None
    advice = "start the step again with `python -m localvertex run`"
    try:
        content = parse_json(regular_files.read_private(name, max_bytes=_MAX_BYTES), "its text")
    except FileNotFoundError:
        raise UserError(f"{VARIABLE} names {name!r}, which does not exist: the run has ended; {advice}") from None
    except regular_files.Unusable as error:
        raise UserError(f"{VARIABLE} names {name!r}, which {error}; {advice}") from None
    except UserError:
        content = None
    found = content if isinstance(content, dict) else {}
    address, token = str(found.get("address", "")), str(found.get("token", ""))
    if not (_ADDRESS.fullmatch(address) and _TOKEN.fullmatch(token)):
        raise UserError(f"{VARIABLE} names {name!r}, which is not an address with a token; {advice}")
    return StepEndpoint(address=address, token=token)


def write(path: Path, endpoint: StepEndpoint) -> None:
    """Write the file, which does not exist yet and only its owner can read.

    Raises:
        OSError: It cannot be written.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:
        json.dump({"address": endpoint.address, "token": endpoint.token}, file)


def credentials(endpoint: StepEndpoint) -> Any:
    """Return credentials of google-auth with the token, which they send to this address only, and to no proxy."""
    from google.auth import credentials as auth, exceptions
    from requests.utils import get_environ_proxies

    class Credentials(auth.Credentials):
        """The token of a run."""

        def refresh(self, request: Any) -> None:
            """Do nothing: the token belongs to the run."""

        def before_request(self, request: Any, method: str, url: str, headers: Any) -> None:
            """Add the token to a request to the endpoint."""
            if not url.startswith(f"{endpoint.address}/"):
                return
            if get_environ_proxies(url):
                text = "a proxy would get the token; add 127.0.0.1 and localhost to the variable NO_PROXY"
                raise exceptions.RefreshError(text)  # type: ignore[no-untyped-call]
            headers["authorization"] = f"Bearer {endpoint.token}"

    found = Credentials()  # type: ignore[no-untyped-call]
    found.token = endpoint.token
    return found
