"""The file of a time series: whole lines only, the last value of a step, nothing half-written."""

import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from localvertex.api.tensorboards import points


def point(step: int, value: float = 0.5) -> dict[str, Any]:
    return {"step": str(step), "wallTime": "2026-01-01T00:00:00Z", "scalar": {"value": value}}


@contextmanager
def files_up_to(num_bytes: int) -> Iterator[None]:
    """Let the kernel refuse larger files, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def read(path: Path) -> list[dict[str, Any]]:
    """Read a file that is not damaged."""
    return points.read(path, pytest.fail)


def test_points_are_read_in_the_order_of_their_steps_and_the_last_value_of_a_step_counts(tmp_path: Path) -> None:
    path = tmp_path / "series" / "points"
    assert read(path) == []
    points.append({path: [point(7), point(-1)]})
    points.append({path: [point(3), point(7, 9.0), {"scalar": {}}]})
    assert read(path) == [point(-1), {"scalar": {}}, point(3), point(7, 9.0)]


@pytest.mark.parametrize("cut", [1, 2, 20])
def test_a_torn_last_line_is_ignored_and_does_not_harm_the_next_point(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "points"
    points.append({path: [point(1), point(2)]})
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert read(path) == [point(1)]
    points.append({path: [point(3)]})
    assert read(path) == [point(1), point(3)]


@pytest.mark.parametrize("damage", [b"\x00" * 20, b"", b"00000000 {}", b"00000000 ", b"\xff\xfe", b'{"step": "2"}'])
def test_a_damaged_line_costs_its_own_point_only_and_is_reported(tmp_path: Path, damage: bytes) -> None:
    path, reported = tmp_path / "points", list[str]()
    points.append({path: [point(1), point(2), point(3)]})
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], damage, *lines[2:]]))
    assert points.read(path, reported.append) == [point(1), point(3)]
    assert len(reported) == 1
    assert str(path) in reported[0]
    assert "1 of 3 lines" in reported[0]


def test_a_changed_digit_is_noticed(tmp_path: Path) -> None:
    path, reported = tmp_path / "points", list[str]()
    points.append({path: [point(1, 0.25)]})
    path.write_bytes(path.read_bytes().replace(b"0.25", b"0.75"))
    assert points.read(path, reported.append) == []
    assert reported


def test_a_full_disk_leaves_every_file_as_it_was(tmp_path: Path) -> None:
    first, second, new = tmp_path / "a" / "points", tmp_path / "b" / "points", tmp_path / "c" / "points"
    points.append({first: [point(1)], second: [point(1)]})
    before = first.read_bytes()
    with files_up_to(300), pytest.raises(OSError, match="File too large"):
        points.append({first: [point(2)], new: [point(1)], second: [point(each) for each in range(50)]})
    assert (first.read_bytes(), second.read_bytes()) == (before, before)
    assert read(new) == []
    points.append({first: [point(2)]})
    assert read(first) == [point(1), point(2)]
