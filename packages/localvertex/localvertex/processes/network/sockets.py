"""The kernel's tables of TCP sockets: which user listens at a port, and which has the other end of a connection."""

import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from localvertex._base import linux

_LISTENING, _ESTABLISHED = "0A", "01"

_EVERYWHERE = ("00000000", "00000000000000000000000000000000")
"""0.0.0.0 and ::."""

LOOPBACK = ("0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F")
"""127.0.0.1, ::1 and ::ffff:127.0.0.1, in the byte order of the machine."""

_MAPPED = "0000000000000000FFFF0000"
"""The start of an IPv4 address in the table of IPv6, in little endian."""

Address = tuple[str, int]
"""An IPv4 address of this machine, and a port."""


@dataclass(frozen=True, kw_only=True)
class Socket:
    """One line of a table, see proc(5)."""

    local: str
    """Address and port in hexadecimal, with a colon between them."""
    remote: str
    """Like `local`."""
    user: int
    inode: int

    @property
    def port(self) -> int:
        """The port at this end."""
        return int(self.local.partition(":")[2], 16)

    @property
    def address(self) -> str:
        """The address at this end."""
        return self.local.partition(":")[0]


def listening() -> Iterator[Socket]:
    """Yield all sockets that listen; none on systems without the tables."""
    return _table(_LISTENING)


def _table(state: str) -> Iterator[Socket]:
    for each in linux.tcp_tables():
        # Number, local address, remote address, state, three columns, user id, time, inode.
        for columns in map(str.split, Path(each).read_text().splitlines()[1:]):
            if columns[3] == state:
                yield Socket(local=columns[1], remote=columns[2], user=int(columns[7]), inode=int(columns[9]))


def are_own(port: int) -> bool:
    """Return whether a connection to a port of this machine reaches a process of this user; True if unknown."""
    if not linux.tcp_tables():
        return True
    reached = (*_EVERYWHERE, *LOOPBACK)
    return {each.user for each in listening() if each.port == port and each.address in reached} == {os.geteuid()}


def is_from_own_user(client: Address | None, server: Address | None) -> bool:
    """Return whether a process of this user, or of root, has the client's end of a connection; True if unknown.

    A socket that its process has closed belongs to user 0 in the table, and has no inode. Hence it does not count.
    """
    if not linux.tcp_tables():
        return True
    if client is None or server is None:
        return False
    ends = [(start + _text(client), start + _text(server)) for start in ("", _MAPPED)]
    users = {each.user for each in _table(_ESTABLISHED) if each.inode and (each.local, each.remote) in ends}
    return bool(users) and users <= {0, os.geteuid()}


def _text(address: Address) -> str:
    """Return an address as in the table, whose numbers have the byte order of the machine."""
    number = int.from_bytes(socket.inet_aton(address[0]), sys.byteorder)
    return f"{number:08X}:{address[1]:04X}"
