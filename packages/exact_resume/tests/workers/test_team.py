"""Workers meet through a file in a folder: strangers and stale files neither join nor harm them."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from exact_resume.errors import InputError, RunError
from exact_resume.files import storage
from exact_resume.workers.deadline import Deadline
from exact_resume.workers.meeting import InFolder
from exact_resume.workers.place import Place
from exact_resume.workers.signals import StopRequest
from exact_resume.workers.team import Pace, SeveralWorkers

PATIENT = 60.0


class Worker(threading.Thread):
    """A thread that meets the others, makes exchanges and closes."""

    def __init__(self, folder: Path | str, rank: int, count: int = 2, *, work: Callable[[SeveralWorkers], Any]) -> None:
        super().__init__(daemon=True)
        self.result: Any = None
        self.lost: list[str] = []
        self._folder, self._place, self._do = folder, Place(rank=rank, num_workers=count), work
        self.start()

    def run(self) -> None:
        try:
            team = SeveralWorkers(
                self._place,
                InFolder(self._place, str(self._folder), "7"),
                timeout_seconds=PATIENT,
                deadline=Deadline(StopRequest(), PATIENT, print),
                leave=self.lost.append,
            )
            with contextlib.closing(team):
                self.result = self._do(team)
        except Exception as error:
            self.result = error

    def end(self) -> Any:
        self.join(PATIENT)
        assert not self.is_alive()
        return self.result


def once(team: SeveralWorkers) -> Any:
    """Exchange one value."""
    return team.exchange("own", lambda values: [len(values)], is_last=True)


def address(folder: Path) -> dict[str, Any]:
    for _ in range(12_000):
        for path in folder.glob("rendezvous-*"):
            with contextlib.suppress(ValueError):
                found: dict[str, Any] = json.loads(path.read_text())
                return found
        threading.Event().wait(0.005)
    raise AssertionError("the chief has written no file")


def answered(connection: socket.socket) -> bytes:
    """Return all that comes until the connection is closed."""
    connection.settimeout(PATIENT)
    text = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            text += piece
    return text


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x80\x04\x95\n" * 3,
        b"x" * 100_000,
        b"[" * 1000 + b"\n",
        b'{"rank": 1, "challenge": "a"}\n{"proof": "\xc3\xa9"}\n',
        b'{"rank": [], "challenge": {}}\n{"proof": "00"}\n',
        b'{"rank": 1}\nnull\n',
        b"null\n",
    ],
)
def test_a_stranger_is_turned_away_and_harms_nothing(tmp_path: Path, garbage: bytes) -> None:
    chief = Worker(tmp_path, 0, work=once)
    found = address(tmp_path)
    place = found["host"], found["port"]
    with socket.create_connection(place), socket.create_connection(place) as stranger:
        # The first one is silent.
        with contextlib.suppress(OSError):
            stranger.sendall(garbage)
        assert found["token"].encode() not in answered(stranger)
        worker = Worker(tmp_path, 1, work=once)
        assert (worker.end(), chief.end()) == ([2], [2])
    assert list(tmp_path.iterdir()) == []
    assert chief.lost == worker.lost == []


def test_the_chiefs_own_proof_sent_back_opens_nothing(tmp_path: Path) -> None:
    chief = Worker(tmp_path, 0, work=once)
    found = address(tmp_path)
    with socket.create_connection((found["host"], found["port"]), timeout=PATIENT) as mirror:
        with contextlib.suppress(OSError):
            while piece := mirror.recv(65536):
                mirror.sendall(piece)
    assert chief.is_alive()
    assert (Worker(tmp_path, 1, work=once).end(), chief.end()) == ([2], [2])


def test_another_program_at_the_stale_address_is_not_mistaken_for_the_chief(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        stale = {"host": "127.0.0.1", "port": other.getsockname()[1], "token": "former"}
        # The same name that the chief gives it.
        chief = Worker(tmp_path, 0, work=once)
        address(tmp_path)
        (path,) = tmp_path.glob("rendezvous-*")
        right = path.read_bytes()
        path.write_text(json.dumps(stale))
        worker = Worker(tmp_path, 1, work=once)
        guest, _ = other.accept()
        with guest:
            guest.sendall(b'{"rank": 0, "challenge": "a"}\n{"proof": "b"}\n')
            assert json.loads(answered(guest).splitlines()[0])["rank"] == 1
        path.write_bytes(right)
        assert (worker.end(), chief.end()) == ([2], [2])


def test_a_worker_that_dies_while_it_waits_is_missing_again(tmp_path: Path) -> None:
    def followed() -> list[threading.Thread]:
        """Return the chief's thread that reads what worker 1 sends: as long as there is one, another is turned away."""
        # Some have not been started yet.
        return [each for each in threading.enumerate() if each.name == "worker 1" and each.is_alive()]

    def leave(_: SeveralWorkers) -> str:
        while not followed():
            threading.Event().wait(0.005)
        return "gone"

    chief = Worker(tmp_path, 0, 3, work=once)
    assert Worker(tmp_path, 1, 3, work=leave).end() == "gone"
    for thread in followed():
        thread.join(PATIENT)
    workers = [Worker(tmp_path, rank, 3, work=once) for rank in (1, 2)]
    assert [each.end() for each in (chief, *workers)] == [[3], [3], [3]]


def test_a_second_worker_with_the_same_number_is_turned_away(tmp_path: Path) -> None:
    joined = threading.Event()

    def join(team: SeveralWorkers) -> Any:
        joined.set()
        return once(team)

    chief = Worker(tmp_path, 0, 3, work=once)
    first = Worker(tmp_path, 1, 3, work=join)
    assert joined.wait(PATIENT)
    second = Worker(tmp_path, 1, 3, work=once)
    for _ in range(12_000):
        if second.lost:
            break
        threading.Event().wait(0.005)
    assert second.lost == ["worker 0: its connection ended"]
    third = Worker(tmp_path, 2, 3, work=once)
    assert [each.end() for each in (chief, first, third)] == [[3], [3], [3]]


def test_workers_meet_through_a_bucket(server: Any) -> None:
    workers = [Worker("gs://b/run", rank, work=once) for rank in (0, 1)]
    assert [worker.end() for worker in workers] == [[2], [2]]
    assert storage.names("gs://b/run") == []


def test_an_exception_that_comes_from_a_lost_worker_is_told_from_an_own_one(tmp_path: Path) -> None:
    """A collective operation may raise before the thread that reads the connection has seen that it ended."""
    workers = [Worker(tmp_path, 0, work=SeveralWorkers.fail), Worker(tmp_path, 1, work=lambda team: None)]
    assert [worker.end() for worker in workers] == [None, None]
    assert [worker.lost for worker in workers] == [["worker 1: its connection ended"], []]
    workers = [Worker(tmp_path, rank, work=SeveralWorkers.fail) for rank in (0, 1)]
    assert [worker.end() for worker in workers] == [None, None]
    assert [worker.lost for worker in workers] == [[], []]


def test_a_worker_that_fails_is_not_ended_by_those_that_leave_because_of_it(tmp_path: Path) -> None:
    """However long it takes to log its end, it leaves with its own exit code."""
    left = threading.Event()

    def fail(team: SeveralWorkers) -> bool:
        team.fail()
        left.wait(PATIENT)
        return any(peer.thread.join(PATIENT) for peer in team._peers.values())

    chief = Worker(tmp_path, 0, work=lambda team: team._peers[1].thread.join(PATIENT))
    worker = Worker(tmp_path, 1, work=fail)
    chief.end()
    left.set()
    assert worker.end() is False
    assert (chief.lost, worker.lost) == (["worker 1: it failed"], [])


@pytest.mark.parametrize("kind", [InputError, RunError])
def test_a_refusal_of_the_chief_is_raised_on_all(tmp_path: Path, kind: type[Exception]) -> None:
    def refused(team: SeveralWorkers) -> Any:
        def decide(values: list[Any]) -> Any:
            raise kind("no")

        return team.exchange(0, decide)

    workers = [Worker(tmp_path, rank, work=refused) for rank in (0, 1)]
    assert [(type(worker.end()), str(worker.end()), worker.lost) for worker in workers] == [(kind, "no", [])] * 2


def test_a_value_that_is_too_long_is_refused_by_the_worker_that_sends_it(tmp_path: Path) -> None:
    workers = [
        Worker(tmp_path, 0, work=once),
        Worker(tmp_path, 1, work=lambda team: team.exchange("x" * 2**23, lambda values: None)),
    ]
    assert "bytes as JSON; several workers exchange at most" in str(workers[1].end())


def test_a_block_is_as_long_as_the_time_allows_and_grows_gradually() -> None:
    pace = Pace()
    assert pace.num_steps == 1
    pace.record(1, 5.0)
    assert pace.num_steps == 1
    pace.record(1, 0.001)
    assert pace.num_steps == 4
    pace.record(4, 0.004)
    assert pace.num_steps == 16
    pace.record(16, 16.0)
    assert pace.num_steps == 2
