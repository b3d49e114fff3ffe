"""The ports of replicas: no other machine reaches them, although programs such as TensorFlow listen everywhere."""

import socket
from collections.abc import Callable
from typing import Any

import pytest

from localvertex._base import linux
from localvertex.jobs import JobState, Outcome
from localvertex.processes.network import loopback

# Listens on all interfaces at the replica's address, and waits until its socket is bound to the loopback device.
LISTEN = """
import json, os, socket, time
config = json.loads(os.environ["TF_CONFIG"])
def address(role): return config["cluster"][role][0].split(":")
def listen():
    server = socket.create_server(("", int(address(config["task"]["type"])[1])))
    wait_for(server)
    return server
def wait_for(server):
    while server.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16).rstrip(b"\\0") != b"lo": time.sleep(0.01)
def connect(role):
    while True:
        try: return socket.create_connection((address(role)[0], int(address(role)[1])))
        except ConnectionError: time.sleep(0.01)
"""

SERVER_OF_TENSORFLOW = """
import tensorflow as tf
server = tf.distribute.Server({"chief": [":".join(address("chief"))]}, job_name="chief", task_index=0)
def listens(number):
    try: found = socket.socket(fileno=os.dup(number))
    except OSError: return None
    is_it = found.family in (socket.AF_INET, socket.AF_INET6) and found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    return found if is_it and found.getsockname()[1] == int(address("chief")[1]) else None
found = [each for number in map(int, os.listdir("/proc/self/fd")) if (each := listens(number))]
assert found
for each in found: wait_for(each)
"""  # noqa: E501

ACCEPT = "listen().accept()[0].recv(1)"

CONNECT = "connect('chief').sendall(b'x'); time.sleep(600)"


@pytest.fixture
def _permitted() -> None:
    """Skip where the system does not permit it, e.g. in a container with an old seccomp profile."""
    reported: list[str] = []
    with socket.create_server(("", 0)) as server:
        loopback.LoopbackPorts([server.getsockname()[1]], reported.append).confine()
    if reported:
        pytest.skip(reported[0])


@pytest.mark.usefixtures("_permitted")
def test_ports_are_confined_and_peers_still_meet(
    message: Callable[..., dict[str, Any]], run: Callable[..., Outcome], log: Callable[..., str]
) -> None:
    outcome = run(message((LISTEN + ACCEPT, 1), (LISTEN + CONNECT, 1), timeout="300s"))
    assert outcome.state is JobState.SUCCEEDED, outcome.error
    assert "warning" not in log()


@pytest.mark.usefixtures("_permitted")
def test_the_port_of_a_restarted_replica_is_confined_too(
    message: Callable[..., dict[str, Any]], run: Callable[..., Outcome]
) -> None:
    # The worker listens, is killed, and tells the chief once its second process is confined.
    first = "server = listen(); open('first', 'x') and os.kill(os.getpid(), 9) if not os.path.exists('first') else 0; "
    outcome = run(message((LISTEN + ACCEPT, 1), (LISTEN + first + CONNECT, 1), timeout="300s"))
    assert outcome.state is JobState.SUCCEEDED, outcome.error
    assert outcome.status.num_restarts == 1


@pytest.mark.slow
@pytest.mark.usefixtures("_permitted")
def test_the_port_of_tensorflow_is_confined(
    message: Callable[..., dict[str, Any]], run: Callable[..., Outcome]
) -> None:
    outcome = run(message((LISTEN + SERVER_OF_TENSORFLOW, 1), ("import time; time.sleep(600)", 1), timeout="300s"))
    assert outcome.state is JobState.SUCCEEDED, outcome.error


def test_what_the_system_does_not_permit_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux, "_PIDFD_GETFD", 9999)  # as on a kernel that lacks it
    reported: list[str] = []
    with socket.create_server(("", 0)) as server, socket.create_server(("127.0.0.1", 0)) as local:
        ports = [each.getsockname()[1] for each in (server, local)]
        confined = loopback.LoopbackPorts(ports, reported.append)
        confined.confine()
        confined.confine()
    (line,) = reported
    assert line.startswith(f"warning: other machines may reach port {ports[0]} of this job")
    assert line.endswith("Function not implemented")
