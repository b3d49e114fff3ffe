"""Emulators of Cloud Storage on this machine, for which gs:// needs no credentials."""

import re
from collections.abc import Mapping
from urllib.parse import urlsplit

_EMULATORS = ("STORAGE_EMULATOR_HOST", "CLOUD_STORAGE_EMULATOR_ENDPOINT")
"""Variables that redirect Google's libraries to an emulator of Cloud Storage."""

_LOOPBACK = re.compile(r"localhost|127(?:\.\d+){3}|::1")


def is_loopback(address: str) -> bool:
    """Return whether a URL, or a host with a port, is on this machine."""
    try:
        host = urlsplit(address if "://" in address else f"//{address}").hostname
    except ValueError:
        return False
    return host is not None and _LOOPBACK.fullmatch(host) is not None


def has_emulator(variables: Mapping[str, str]) -> bool:
    """Return whether gs:// means an emulator on this machine, which needs no credentials."""
    return any(is_loopback(variables.get(name, "")) for name in _EMULATORS)
