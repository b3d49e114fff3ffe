"""Workers meet at the chief's address of TF_CONFIG: differences are found by name, and waiting has an end."""

import contextlib
import socket
import threading
from typing import Any

import pytest

from exact_resume.errors import InputError
from exact_resume.workers import deadline as deadlines
from exact_resume.workers.cluster import Cluster
from exact_resume.workers.deadline import Deadline, TimedOut
from exact_resume.workers.meeting import AtAddress, refuse_difference
from exact_resume.workers.place import of_cluster
from exact_resume.workers.signals import StopRequest
from exact_resume.workers.team import SeveralWorkers

SETTINGS_FRAME = bytes([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100])
"""What a gRPC server sends first."""
PATIENT = 60.0


@pytest.fixture
def addresses() -> tuple[str, ...]:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        return tuple(f"127.0.0.1:{each.getsockname()[1]}" for each in (one, other))


def cluster(addresses: tuple[str, ...], kind: str, index: int = 0) -> Cluster:
    machines = {"chief": addresses[:1], "worker": (*addresses[1:], "127.0.0.1:1")}
    return Cluster(addresses=machines, task_type=kind, task_index=index)


class Worker(threading.Thread):
    """One worker that meets the others; what it raised, and what it said."""

    def __init__(self, own: Cluster, fields: dict[str, Any], *, seconds: float = PATIENT) -> None:
        super().__init__(daemon=True)
        self.raised: BaseException | None = None
        self.said: list[str] = []
        self.stop = StopRequest()
        self.lost: list[str] = []
        self._own, self._fields, self._seconds = own, fields, seconds
        self.start()

    def run(self) -> None:
        place, tasks = of_cluster(self._own), self._own.tasks("chief", "worker")
        try:
            team = SeveralWorkers(
                place,
                AtAddress(place, tasks),
                timeout_seconds=PATIENT,
                deadline=Deadline(self.stop, self._seconds, self.said.append),
                leave=self.lost.append,
            )
            with contextlib.closing(team):
                team.exchange(self._fields, lambda shown: refuse_difference(shown, names=[*tasks]), is_last=True)
        except BaseException as error:
            self.raised = error

    def end(self) -> BaseException | None:
        self.join(PATIENT)
        assert not self.is_alive()
        return self.raised


def test_workers_with_equal_fields_meet_whoever_comes_first(addresses: tuple[str, ...]) -> None:
    fields = {"learning_rate": 0.1, "addresses": addresses}
    first = Worker(cluster(addresses, "worker"), fields)
    with socket.create_server(("127.0.0.1", int(addresses[0].partition(":")[2]))) as tensorflow:
        # A worker that was restarted finds the chief in TensorFlow already: no answer to it.
        guest, _ = tensorflow.accept()
        guest.sendall(SETTINGS_FRAME)
        guest.close()
    chief = Worker(cluster(addresses, "chief"), fields)
    # A scanner of ports is no worker.
    with socket.create_connection(reached(addresses[0])) as scanner:
        scanner.sendall(b"GET / HTTP/1.1\r\n\r\n")
        last = Worker(cluster(addresses, "worker", 1), fields)
        assert [worker.end() for worker in (first, last)] == [None, None]
    assert chief.end() is None
    # TensorFlow takes the address over at once.
    with socket.create_server(("127.0.0.1", int(addresses[0].partition(":")[2]))):
        pass


def reached(address: str) -> tuple[str, int]:
    """Return an address once something listens there."""
    host, _, port = address.partition(":")
    for _ in range(600):
        try:
            socket.create_connection((host, int(port))).close()
            return host, int(port)
        except OSError:
            threading.Event().wait(0.05)
    raise AssertionError(f"nothing listens at {address}")


def test_a_difference_ends_all_workers_with_the_same_line(addresses: tuple[str, ...]) -> None:
    fields = {"seed": 0, "learning_rate": 0.1}
    workers = [
        Worker(cluster(addresses, "chief"), fields),
        Worker(cluster(addresses, "worker"), fields),
        Worker(cluster(addresses, "worker", 1), {**fields, "learning_rate": 0.5}),
    ]
    (line,) = {str(worker.end()) for worker in workers}
    assert line == (
        "the workers differ: learning_rate is 0.1 on chief 0, worker 0 and 0.5 on worker 1; start all with the same"
        " flags, data and code"
    )
    assert all(isinstance(worker.raised, InputError) for worker in workers)


def test_a_field_that_one_worker_lacks_is_a_difference() -> None:
    with pytest.raises(InputError, match='run_label is "x" on worker 0 and null on worker 1'):
        refuse_difference([{"run_label": "x"}, {}])
    refuse_difference([{"cluster": ["x"]}, {"cluster": ("x",)}])


@pytest.mark.slow
def test_each_says_whom_it_waits_for_and_gives_up(addresses: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "SECONDS_BETWEEN_REPORTS", 0.1)
    alone = Worker(cluster(addresses, "worker", 1), {}, seconds=3.0)
    raised = alone.end()
    assert isinstance(raised, TimedOut)
    assert raised.exit_code == 134
    assert alone.said[0].startswith(f"waiting for chief 0 ({addresses[0]}) for ")
    assert alone.said[-1].startswith("gave up after ")
    chief = Worker(cluster(addresses, "chief"), {}, seconds=PATIENT)
    worker = Worker(cluster(addresses, "worker"), {}, seconds=PATIENT)
    # Both know from the chief who is missing.
    for waiting in (chief, worker):
        for _ in range(600):
            if any(line.startswith("waiting for worker 1 (127.0.0.1:1) for") for line in waiting.said):
                break
            threading.Event().wait(0.05)
        else:
            raise AssertionError(waiting.said)
    for waiting in (chief, worker):
        waiting.stop.signal_number = 15
        raised = waiting.end()
        assert isinstance(raised, TimedOut)
        assert raised.exit_code == 143


def test_a_worker_that_dies_while_it_waits_is_missing_again(addresses: tuple[str, ...]) -> None:
    chief = Worker(cluster(addresses, "chief"), {"seed": 0})
    dying = Worker(cluster(addresses, "worker"), {"seed": 7})
    reached(addresses[0])
    dying.stop.signal_number = 15
    dying.end()
    # Its successor has the right flags.
    workers = [Worker(cluster(addresses, "worker", index), {"seed": 0}) for index in (0, 1)]
    assert [worker.end() for worker in (chief, *workers)] == [None, None, None]
