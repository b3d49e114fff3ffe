"""A webhook: the rules for its address, the request, and the shape that each chat service accepts."""

import ipaddress
import logging
from typing import Any
from urllib.parse import urlsplit

from components.summary.notification.delivery import (
    Limits,
    NotSentError,
    TemporaryError,
    call_with_retries,
    check_status,
)

_TEXT_ONLY = ("chat.googleapis.com", ".webhook.office.com")
"""Hosts that refuse or ignore other fields; those with a dot are suffixes. Google Chat answers 400 to unknown ones."""

_CARDS = (".logic.azure.com", ".api.powerplatform.com")
"""Hosts of workflows of Microsoft Teams, which accept only cards."""

_SLACK = ("hooks.slack.com", "hooks.slack-gov.com")


def post(address: str, message: dict[str, Any], limits: Limits) -> None:
    """Send a message to a webhook.

    Args:
        address: Its URL, a secret.
        message: The fields; `text` is what people read.
        limits: Limits of time and number.

    Raises:
        NotSentError: It was not accepted; the message contains no part of the address.
    """
    host = _check_host(address)
    # Its debug lines contain the path, and a program may log everything.
    logging.getLogger("urllib3").setLevel(logging.WARNING)
    call_with_retries(lambda: _post_once(address, body_for(host, message), is_loopback(host), limits), limits)


def _post_once(address: str, body: dict[str, Any], is_local: bool, limits: Limits) -> None:
    import requests

    try:
        with requests.Session() as session:
            # A proxy would read what goes to this machine, which is not encrypted.
            session.trust_env = not is_local
            # The answer's body is not read: it may be endless.
            options: dict[str, Any] = {"timeout": limits.timeout, "allow_redirects": False, "stream": True}
            with session.post(address, json=body, **options) as response:
                check_status(response.status_code)
    except requests.exceptions.SSLError:
        raise NotSentError("the receiver's TLS certificate or protocol was not accepted") from None
    except requests.exceptions.ProxyError:
        raise TemporaryError("the proxy did not connect") from None
    except requests.exceptions.Timeout:
        raise TemporaryError("the receiver did not answer in time") from None
    except requests.exceptions.ConnectionError:
        raise TemporaryError("the connection failed or was closed without an answer") from None
    except (requests.exceptions.RequestException, ValueError):
        # The texts of these errors contain the address.
        raise NotSentError("the address cannot be used") from None


def _check_host(address: str) -> str:
    """Return the host of an address.

    Raises:
        NotSentError: It has none, or is not encrypted.
    """
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise NotSentError("the address is not a URL") from None
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
        raise NotSentError("the address does not begin with https:// (http:// is only for this machine)")
    # At a backslash, requests ends the host earlier than urlsplit does.
    if not host or not address.isascii() or any(each.isspace() or each == "\\" for each in address):
        raise NotSentError("the address is not a URL with a host and without blanks")
    return host


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def body_for(host: str, message: dict[str, Any]) -> dict[str, Any]:
    """Return the body that a receiver accepts: all fields, if it is not known to refuse them.

    In Slack and Google Chat `<` begins mentions of all members, which the text of an error must not cause.
    """
    text = str(message["text"])
    if _is_one_of(host, _SLACK):
        return message | {"text": text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")}
    if _is_one_of(host, _TEXT_ONLY):
        return {"text": text.replace("<", "\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}")}
    if _is_one_of(host, _CARDS):
        block = {"type": "TextBlock", "text": text.replace("\n", "\n\n"), "wrap": True}
        card = {"type": "AdaptiveCard", "version": "1.4", "body": [block]}
        attachment = {"contentType": "application/vnd.microsoft.card.adaptive", "contentUrl": None, "content": card}
        return {"type": "message", "attachments": [attachment]}
    return message


def _is_one_of(host: str, names: tuple[str, ...]) -> bool:
    return any(host.endswith(name) if name.startswith(".") else host == name for name in names)
