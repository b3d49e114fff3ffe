"""The sockets that the kernel reports are those of its tables, in the same form."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from localvertex._base import linux
from localvertex.processes.network import sockets

_LISTENING, _ESTABLISHED = 10, 1


@pytest.fixture
def ports() -> Iterator[dict[str, int]]:
    """Listen with and connect sockets of both families; return the ports of the listening ones."""
    with ExitStack() as opened:
        addresses = {
            "127.0.0.1": socket.AF_INET,
            "0.0.0.0": socket.AF_INET,
            "::1": socket.AF_INET6,
            "::": socket.AF_INET6,
        }
        found = {}
        for address, family in addresses.items():
            server = opened.enter_context(socket.create_server((address, 0), family=family))
            found[address] = server.getsockname()[1]
            opened.enter_context(socket.create_connection(server.getsockname()[:2]))
        # Closed connections stay in the tables for a minute, and count for nothing.
        with socket.create_connection(("127.0.0.1", found["127.0.0.1"])):
            pass
        yield found


@pytest.mark.skipif(not linux.tcp_tables(), reason="only Linux has these tables")
@pytest.mark.parametrize("state", [_LISTENING, _ESTABLISHED])
def test_the_kernel_reports_what_is_in_its_tables(ports: dict[str, int], state: int) -> None:
    def of_these(found: object) -> list[sockets.Socket]:
        return sorted(
            (each for each in found if each.port in ports.values()),  # type: ignore[attr-defined]
            key=repr,
        )

    reported = of_these(
        [each for family in (socket.AF_INET, socket.AF_INET6) for each in sockets._diagnosed(family, state)]
    )
    assert len(reported) == 4
    assert {each.user for each in reported} == {os.geteuid()}
    assert reported == of_these(sockets._in_proc(state))


@pytest.mark.skipif(not linux.tcp_tables(), reason="only Linux has these tables")
def test_a_kernel_that_does_not_report_its_sockets_still_has_its_tables(
    ports: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The kernel answers a question that it does not know with an error.
    monkeypatch.setattr(sockets, "_BY_FAMILY", 4711)
    with pytest.raises(OSError, match="does not report"):
        list(sockets._diagnosed(socket.AF_INET, _LISTENING))
    assert {*ports.values()} <= {each.port for each in sockets.listening()}
    assert sockets.are_own(ports["127.0.0.1"])
