"""Confines the ports of a job's replicas to the loopback interface, whatever address their programs bind.

TensorFlow's servers listen on all interfaces, without authentication and without a setting for it. The kernel lets a
program copy a socket of another process of the same user, pidfd_getfd(2), and bind it to the loopback device.
"""

import ctypes
import os
import socket
from collections.abc import Callable, Iterable
from pathlib import Path

from localvertex.processes.network import listeners

_PIDFD_GETFD = 438
"""Number of the system call, the same on all architectures; Linux 5.6."""

_DEVICE = b"lo\0"


class LoopbackPorts:
    """The ports of one job.

    Args:
        ports: Where its replicas listen for each other.
        report: Called once for each socket that cannot be confined.
    """

    def __init__(self, ports: Iterable[int], report: Callable[[str], None]) -> None:
        self._ports, self._report = frozenset(ports), report
        self._handled: set[int] = set()

    def confine(self) -> None:
        """Confine the sockets that are new; call it again and again, because a replica may start at any time."""
        if not self._ports:
            return
        found = {
            each.inode: each.port
            for each in listeners.listening()
            if each.port in self._ports and each.user == os.geteuid() and not each.is_loopback
        }
        # A number may be used again.
        self._handled &= set(found)
        for inode in set(found) - self._handled:
            try:
                is_handled = _bind_to_device(inode)
            except OSError as error:
                is_handled = True
                self._report(
                    f"warning: other machines may reach port {found[inode]} of this job, which has no authentication, "
                    f"and it cannot be confined to this machine: {error.strerror}"
                )
            if is_handled:
                self._handled.add(inode)


def _bind_to_device(inode: int) -> bool:
    """Confine a socket; return False if no process has it any more.

    Raises:
        OSError: The system does not permit it.
    """
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(link) != f"socket:[{inode}]":
                continue
            process = os.pidfd_open(int(link.parts[2]))
        except (FileNotFoundError, PermissionError, ProcessLookupError):  # it has ended, or is another user's
            continue
        try:
            _confine(process, int(link.name))
        finally:
            os.close(process)
        return True
    return False


def _confine(process: int, descriptor: int) -> None:
    """Bind a socket of a process to the loopback device."""
    copy = ctypes.CDLL(None, use_errno=True).syscall(_PIDFD_GETFD, process, descriptor, 0)
    if copy < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    with socket.socket(fileno=copy) as same:
        same.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, _DEVICE)
