"""Progress: rate and time left whatever the clock and the counts do, one line per interval."""

import sys
import threading
import time
from pathlib import Path

import pytest

from trainer.files import progress
from trainer.files.progress import Progress


class Clock:
    """A clock that shows what it is set to."""

    seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_rate_and_time_left_follow_from_the_images_that_were_read(clock: Clock) -> None:
    read = Progress("reading", "images", 100_000, clock)
    assert read.text == "reading: 0 of 100,000 images"
    clock.seconds += 10
    read.advance(22_000, num_known=10_000)
    read.advance()
    expected = "22,001 of 100,000 images, 10,000 reused, 1,200 per second, 1 min 5 s left"
    assert read.text == f"reading: {expected}"


@pytest.mark.parametrize(
    ("total", "count", "known", "seconds", "expected"),
    [
        (None, 0, 0, 5, "x: 0 y"),
        (None, 5000, 0, 5, "x: 5,000 y, 1,000 per second"),
        (0, 0, 0, 5, "x: 0 of 0 y"),
        # More than were listed; only known ones; a clock that was set back or does not move; one far ahead.
        (10, 20, 0, 5, "x: 20 y, 4 per second"),
        (10, 5, 5, 5, "x: 5 of 10 y, 5 reused"),
        (10, 5, 0, -1000, "x: 5 of 10 y"),
        (10, 5, 0, 0, "x: 5 of 10 y"),
        (10, 5, 0, 10**12, "x: 5 of 10 y, 5e-12 per second, 277777 h 46 min left"),
        (10, 10, 0, 20, "x: 10 of 10 y, 0.5 per second, 0 s left"),
        (10**6, 25, 0, 10, "x: 25 of 1,000,000 y, 2.5 per second, 111 h 6 min left"),
    ],
)
def test_whatever_is_known(
    clock: Clock, total: int | None, count: int, known: int, seconds: float, expected: str
) -> None:
    made = Progress("x", "y", total, clock)
    made.advance(count, num_known=known)
    clock.seconds += seconds
    assert made.text == expected


def test_in_a_log_there_is_a_line_after_each_interval_and_none_before_the_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress.progress_lines("reading", "images", 10) as read:
        read.advance(5)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.01)
    with progress.progress_lines("reading", "images", 10) as read:
        read.advance(5)
        lines = list[str]()
        while len(lines) < 3:
            time.sleep(0.01)
            lines += capsys.readouterr().err.splitlines()
    assert all(line.startswith("reading: 5 of 10 images, ") for line in lines)
    assert "\x1b" not in "".join(lines)
    capsys.readouterr()
    with pytest.raises(ValueError, match="torn"), progress.progress_lines("reading", "images"):
        raise ValueError("torn")


def test_a_log_that_is_closed_does_not_end_the_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.001)
    with (tmp_path / "log").open("w") as log:
        monkeypatch.setattr(sys, "stderr", log)
        with progress.progress_lines("reading", "images") as read:
            read.advance(5)
            while not (tmp_path / "log").read_text():
                time.sleep(0.001)
            log.close()
            time.sleep(0.05)
            assert [thread.name for thread in threading.enumerate()].count("progress") == 1
