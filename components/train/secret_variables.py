"""Gives a command environment variables from Secret Manager: `python3 -c SOURCE NAME=VERSION ... -- COMMAND`.

It runs in the replica, whose container image may have nothing of this project: its source is an argument of the
command, and needs Python 3.9 and its standard library. No message contains a secret or an answer of the service.
"""

import base64
import json
import os
import sys
import time
import urllib.error
import urllib.request
from typing import Any

_SECRET_MANAGER = "https://secretmanager.googleapis.com"  # noqa: S105 - a public address
_METADATA = "metadata.google.internal"
_TOKEN = "/computeMetadata/v1/instance/service-accounts/default/token"  # noqa: S105
_LOCAL = "LOCALVERTEX_STEP"
_PAUSES_SECONDS = (1.0, 4.0, 16.0)
_TIMEOUT_SECONDS = 20.0


def _get(address: str, header: str, value: str, *handlers: Any) -> Any:
    request = urllib.request.Request(address, headers={header: value})  # noqa: S310 - both addresses are above
    opener = urllib.request.build_opener(*handlers)
    for pause in (*_PAUSES_SECONDS, 0.0):
        try:
            with opener.open(request, timeout=_TIMEOUT_SECONDS) as answer:
                return json.load(answer)
        except OSError as error:
            code = getattr(error, "code", 500)
            if not pause or (code < 500 and code != 429):
                raise
            time.sleep(pause)


def read(version: str) -> str:
    """Return the text of a version in Secret Manager, with the credentials of the machine's service account.

    Raises:
        OSError: A service refuses the call or cannot be reached.
        LookupError, TypeError, ValueError: The answer has no text.
    """
    # A proxy would see the token of the metadata server, which only this machine reaches.
    metadata, direct = os.environ.get("GCE_METADATA_HOST", _METADATA), urllib.request.ProxyHandler({})
    token = _get(f"http://{metadata}{_TOKEN}", "Metadata-Flavor", "Google", direct)["access_token"]
    found = _get(f"{_SECRET_MANAGER}/v1/{version}:access", "Authorization", f"Bearer {token}")
    return base64.b64decode(found["payload"]["data"], validate=True).decode()


def reason(error: Exception) -> str:
    """Return why a secret cannot be read: the code of an answer, or the kind of the error, but not its text."""
    return str(getattr(error, "code", type(error).__name__))


def main(arguments: list[str]) -> None:
    """Set the variables and become the command.

    Raises:
        SystemExit: A secret cannot be read.
    """
    end = arguments.index("--")
    for name, _, version in (each.partition("=") for each in arguments[:end]):
        if _LOCAL in os.environ:
            # A local run calls no Google service.
            if name not in os.environ:
                sys.exit(f"error: secret {name}: set it in your shell and add --with-credentials")
            continue
        try:
            os.environ[name] = read(version)
        except Exception as error:
            sys.exit(f"error: secret {name}: {version} cannot be read ({reason(error)}); see docs/any-training.md")
    # Without a shell, in place of this process, which gets its signals.
    os.execvp(arguments[end + 1], arguments[end + 1 :])  # noqa: S606


if __name__ == "__main__":
    main(sys.argv[1:])
