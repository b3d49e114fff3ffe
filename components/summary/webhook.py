"""Sends the end of a run to a webhook. Its address is a secret: no error contains a part of it."""

import ipaddress
import logging
import re
from urllib.parse import urlsplit

from components.train import secret_variables
from localvertex._base.userinput.errors import UserError

VARIABLE = "IMAGE_TRAINING_WEBHOOK"
"""Environment variable with the address, for local runs."""

_SECRET = re.compile(
    r"(projects/(?:[a-z0-9.-]+:)?[a-z0-9-]+/secrets/[A-Za-z0-9_-]{1,255})(?:/versions/(latest|[0-9]+|[A-Za-z][\w-]*))?"
)
_TIMEOUT = (5.0, 10.0)
"""Seconds to connect, and of silence while waiting for an answer."""
_NUM_RETRIES, _RETRY_SECONDS = 2, 1.0


class NotSentError(Exception):
    """The message was not delivered; the text is part of one line and contains no address."""


def secret_version(name: str) -> str:
    """Return the resource name of a secret's version, the latest one unless another is named.

    Raises:
        UserError: The name is not valid; the message does not contain it, because it may be the address itself.
    """
    found = _SECRET.fullmatch(name)
    if not found:
        raise UserError(
            "the webhook's secret has no valid resource name; expected projects/PROJECT/secrets/NAME, "
            "and the address itself in Secret Manager only"
        )
    return f"{found[1]}/versions/{found[2] or 'latest'}"


def address_in(secret: str) -> str:
    """Return the address that a secret contains.

    Raises:
        UserError: The name is not valid.
        NotSentError: The secret cannot be read.
    """
    version = secret_version(secret)
    try:
        return secret_variables.read(version).strip()
    except Exception as error:
        reason = secret_variables.reason(error)
        raise NotSentError(f"{version} cannot be read ({reason}); see docs/notifications.md for the role") from None


def post(address: str, text: str) -> None:
    """Send a text, after further attempts if the receiver is not available.

    Raises:
        NotSentError: It was not accepted.
    """
    import requests
    from requests.adapters import HTTPAdapter
    from urllib3.util import Retry

    # Its warnings and debug lines contain the path.
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    # In chats, `<` begins mentions of all members, which the text of an error must not cause.
    body = {"text": text.replace("<", "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}")}
    retries = Retry(
        _NUM_RETRIES,
        redirect=False,
        allowed_methods=None,
        status_forcelist=[429, *range(500, 600)],
        backoff_factor=_RETRY_SECONDS,
        raise_on_status=False,
        respect_retry_after_header=False,
    )
    try:
        with requests.Session() as session:
            for scheme in ("http://", "https://"):
                session.mount(scheme, HTTPAdapter(max_retries=retries))
            # Only requests decides where the host of an unusual address ends.
            host = urlsplit(str(requests.Request("POST", address).prepare().url)).hostname or ""
            if not address.startswith("https://") and not (address.startswith("http://") and _is_loopback(host)):
                raise NotSentError("the address does not begin with https:// (http:// is only for this machine)")
            # A proxy would read what goes to this machine, which is not encrypted.
            session.trust_env = not _is_loopback(host)
            # The answer's body is not read: it may be endless.
            with session.post(address, json=body, timeout=_TIMEOUT, allow_redirects=False, stream=True) as answer:
                code = answer.status_code
    except (requests.exceptions.RequestException, ValueError) as error:
        # The texts of these errors contain the address.
        raise NotSentError(f"the receiver cannot be reached or did not answer ({type(error).__name__})") from None
    if not 200 <= code < 300:
        raise NotSentError(f"the answer was {code}")


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
