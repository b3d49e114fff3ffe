"""Whether the server at a port of this machine belongs to the same user, as the kernel reports it."""

import os
from collections.abc import Iterator
from pathlib import Path

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
"""Sockets, one per line: number, local address, remote address, state, three columns, user id, and more; proc(5)."""

_LISTENING = "0A"

_ADDRESSES = {
    "0100007F": "127.0.0.1",
    "00000000": "0.0.0.0",  # noqa: S104 - an address that is looked for
    "00000000000000000000000001000000": "::1",
    "00000000000000000000000000000000": "::",
    "0000000000000000FFFF00000100007F": "::ffff:127.0.0.1",
}
"""Addresses at which a client that connects to this machine can arrive."""


def are_own(port: int) -> bool:
    """Return whether only servers of this user listen at a port; True where the kernel has no such table."""
    if not _TABLES[0].exists():
        return True
    found = {user for number, user in _listening() if number == port}
    return found == {os.geteuid()}


def _listening() -> Iterator[tuple[int, int]]:
    """Yield port and user id of each socket that listens."""
    for table in _TABLES:
        lines = table.read_text().splitlines()[1:] if table.exists() else []
        for columns in map(str.split, lines):
            address, _, port = columns[1].partition(":")
            if columns[3] == _LISTENING and address in _ADDRESSES:
                yield int(port, 16), int(columns[7])
