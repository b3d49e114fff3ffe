"""The sockets of this machine that listen for TCP connections, as the kernel lists them."""

import os
from collections.abc import Iterator
from dataclasses import dataclass

from localvertex.processes.network import sockets
from localvertex_base import linux

_EVERYWHERE = ("00000000", "00000000000000000000000000000000")
"""0.0.0.0 and ::."""

_LOOPBACK = ("0100007F", "00000000000000000000000001000000", "0000000000000000FFFF00000100007F")
"""127.0.0.1, ::1 and ::ffff:127.0.0.1, in the byte order of the machine."""


@dataclass(frozen=True, kw_only=True)
class Listener:
    """A socket that listens."""

    address: str
    """In hexadecimal, as in the kernel's table."""
    port: int
    user: int
    inode: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it by its address."""
        return self.address in _LOOPBACK


def listening() -> Iterator[Listener]:
    """Yield all sockets that listen; none on systems without such a table."""
    for each in sockets.table(sockets.LISTENING):
        address, _, port = each.local.partition(":")
        yield Listener(address=address, port=int(port, 16), user=each.user, inode=each.inode)


def are_own(port: int) -> bool:
    """Return whether a connection to a port of this machine reaches a process of this user; True if unknown."""
    if not linux.tcp_tables():
        return True
    reached = (*_EVERYWHERE, *_LOOPBACK)
    return {each.user for each in listening() if each.port == port and each.address in reached} == {os.geteuid()}
