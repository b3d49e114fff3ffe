"""Confines the ports of a job's replicas to the loopback interface, whatever address their programs bind.

TensorFlow's servers listen on all interfaces, without authentication and without a setting for it. The kernel lets a
program copy a socket of another process of the same user, pidfd_getfd(2), and bind it to the loopback device.
"""

import os
from collections.abc import Iterable

from localvertex._base import linux
from localvertex._base.lines import WriteLine
from localvertex.processes.network import sockets

_WARNING = (
    "warning: other machines may reach port {} of this job, which has no authentication, and it cannot be confined to "
    "this machine: {}"
)


class LoopbackPorts:
    """The ports of one job.

    Args:
        ports: Where its replicas listen for each other.
        report: Called once for each socket that cannot be confined.
    """

    def __init__(self, ports: Iterable[int], report: WriteLine) -> None:
        self._ports, self._report = frozenset(ports), report
        if self._ports and not linux.tcp_tables():
            report(_WARNING.format(", ".join(map(str, sorted(self._ports))), "only Linux can"))
            self._ports = frozenset()
        self._handled: set[int] = set()

    def confine(self) -> None:
        """Confine the sockets that are new; call it again and again, because a replica may start at any time."""
        if not self._ports:
            return
        found = {
            each.inode: each.port
            for each in sockets.listening()
            if each.port in self._ports and each.user == os.geteuid() and each.address not in sockets.LOOPBACK
        }
        # A number may be used again.
        self._handled &= set(found)
        for inode in set(found) - self._handled:
            try:
                is_handled = linux.bind_to_loopback(inode)
            except OSError as error:
                is_handled = True
                self._report(_WARNING.format(found[inode], error.strerror))
            if is_handled:
                self._handled.add(inode)
