"""Event logs, read while they are being written."""

import json
from pathlib import Path
from typing import Any

import pytest

from localvertex.custom_jobs.goodput.event_files import EventFiles

NAME = "workerpool0-0"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the path of a replica's event log, whose folder exists."""
    path = tmp_path / "checkpoints" / "events" / f"{NAME}.jsonl"
    path.parent.mkdir(parents=True)
    return path


def line(**fields: Any) -> str:
    return json.dumps({"time": 1.0, **fields}) + "\n"


def add(file: Path, text: str) -> None:
    with file.open("a") as stream:
        stream.write(text)


def test_steps_are_followed_as_they_are_written(file: Path, tmp_path: Path) -> None:
    events = EventFiles(str(tmp_path), [NAME])
    assert events.progress(NAME) == (0, 0)
    add(file, line(event="start") + line(event="steps", last_step=5, num_steps=20)[:-4])
    assert not events.poll()
    add(file, line(event="steps", last_step=5, num_steps=20)[-4:])
    assert events.poll()
    assert events.progress(NAME) == (5, 20)
    assert not events.poll()
    assert [event["event"] for event in events.of(NAME)] == ["start", "steps"]


def test_events_of_an_earlier_job_are_ignored(file: Path, tmp_path: Path) -> None:
    add(file, line(event="steps", last_step=5, num_steps=20))
    events = EventFiles(str(tmp_path), [NAME])
    events.poll()
    assert events.of(NAME) == []


@pytest.mark.parametrize(
    "junk", ["half a line\n", "[1]\n", '{"event": "steps"}\n', '{"time": "x", "event": "e"}\n', "\xff\n"]
)
def test_lines_that_are_not_events_are_ignored(file: Path, tmp_path: Path, junk: str) -> None:
    events = EventFiles(str(tmp_path), [NAME])
    add(file, junk + "\n" + line(event="save", step="?"))
    events.poll()
    assert [event["event"] for event in events.of(NAME)] == ["save"]


@pytest.mark.parametrize("base", ["", "gs://bucket/x", "/not/there"])
def test_without_files_there_are_no_events(base: str) -> None:
    events = EventFiles(base, [NAME])
    assert not events.poll()
    assert events.progress(NAME) == (0, 0)
