"""The kernel's TCP sockets: which user listens at a port, and which has the other end of a connection.

The kernel reports the sockets in one state by sock_diag(7), in time proportional to their number. Its tables in
/proc, for a kernel without it, contain every connection that was closed within a minute.
"""

import os
import socket
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from localvertex._base import linux

_LISTENING, _ESTABLISHED = 10, 1
"""From linux/tcp_states.h."""

_DIAGNOSIS, _BY_FAMILY, _DUMP, _DONE = 4, 20, 0x301, 3
"""NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, NLMSG_DONE."""

_HEADER, _QUESTION = struct.Struct("=IHHII"), struct.Struct("=BBxxI48x")
_ANSWER = struct.Struct("=4x2s2s16s16s12x12xII")
"""Ports, addresses, user and inode of `struct inet_diag_msg`."""

_ADDRESS_BYTES = {socket.AF_INET: 4, socket.AF_INET6: 16}

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


def listening() -> list[Socket]:
    """Return all sockets that listen; none on systems other than Linux."""
    return _table(_LISTENING)


def _table(state: int) -> list[Socket]:
    """Return all sockets in a state."""
    if not linux.tcp_tables():
        return []
    try:
        return [each for family in _ADDRESS_BYTES for each in _diagnosed(family, state)]
    except OSError:
        return [*_in_proc(state)]


def _diagnosed(family: socket.AddressFamily, state: int) -> Iterator[Socket]:
    """Yield the sockets of a family that the kernel reports.

    Raises:
        OSError: It does not.
    """
    size = _ADDRESS_BYTES[family]
    with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _DIAGNOSIS) as kernel:
        question = _QUESTION.pack(family, socket.IPPROTO_TCP, 1 << state)
        kernel.sendto(_HEADER.pack(_HEADER.size + len(question), _BY_FAMILY, _DUMP, 0, 0) + question, (0, 0))
        while data := kernel.recv(1 << 16):
            at = 0
            while at < len(data):
                length, kind, *_ = _HEADER.unpack_from(data, at)
                if kind == _DONE:
                    return
                if kind != _BY_FAMILY:
                    raise OSError("the kernel does not report its sockets")
                port, other_port, address, other, user, inode = _ANSWER.unpack_from(data, at + _HEADER.size)
                local, remote = _as_in_proc(address[:size], port), _as_in_proc(other[:size], other_port)
                yield Socket(local=local, remote=remote, user=user, inode=inode)
                at += (length + 3) & ~3


def _as_in_proc(address: bytes, port: bytes) -> str:
    """Return an address, in words of the byte order of this machine, and a port."""
    words = (address[at : at + 4] for at in range(0, len(address), 4))
    return f"{''.join(f'{int.from_bytes(each, sys.byteorder):08X}' for each in words)}:{port.hex().upper()}"


def _in_proc(state: int) -> Iterator[Socket]:
    for each in linux.tcp_tables():
        # Number, local address, remote address, state, three columns, user id, time, inode.
        for columns in map(str.split, Path(each).read_text().splitlines()[1:]):
            if int(columns[3], 16) == state:
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
