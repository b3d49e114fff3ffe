"""Event logs, read while they are being written."""

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from localvertex.jobs.goodput import event_files
from localvertex.jobs.goodput.event_files import EventFiles
from localvertex.jobs.goodput.goodput import goodput
from localvertex.jobs.goodput.progress import Progress
from localvertex.jobs.goodput.timeline import Span

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
    events = EventFiles.of_job(str(tmp_path), [NAME])
    assert events.progress(NAME) == Progress()
    add(file, line(event="start") + line(event="steps", last_step=5, num_steps=20)[:-4])
    assert not events.poll()
    add(file, line(event="steps", last_step=5, num_steps=20)[-4:])
    assert events.poll()
    assert (events.progress(NAME).step, events.progress(NAME).num_steps) == (5, 20)
    assert not events.poll()
    assert [event["event"] for event in events.of(NAME)] == ["start", "steps"]


def test_events_of_an_earlier_job_are_ignored(file: Path, tmp_path: Path) -> None:
    add(file, line(event="steps", last_step=5, num_steps=20))
    events = EventFiles.of_job(str(tmp_path), [NAME])
    events.poll()
    assert events.of(NAME) == []


@pytest.mark.parametrize(
    "junk",
    [
        "half a line\n",
        "[1]\n",
        "[" * 100_000,
        '{"event": "steps"}\n',
        '{"time": 1, "event": {}}\n',
        '{"time": "x", "event": "e"}\n',
        '{"time": NaN, "event": "e"}\n',
        '{"time": 1e999, "event": "e"}\n',
        '{"time": 1, "event": "steps", "loss": 1e308}\n',
        '{"time": 1, "event": "steps", "loss": 1%s}\n' % ("0" * 400),
        "\xff\n",
    ],
    ids=range(11),
)
def test_lines_that_are_not_events_are_ignored(file: Path, tmp_path: Path, junk: str) -> None:
    events = EventFiles.of_job(str(tmp_path), [NAME])
    add(file, junk + "\n" + line(event="save", step="?"))
    events.poll()
    assert [event["event"] for event in events.of(NAME)] == ["save"]


@pytest.mark.parametrize("base", ["", "gs://bucket/x", "/not/there"])
def test_without_files_there_are_no_events(base: str) -> None:
    events = EventFiles.of_job(base, [NAME])
    assert not events.poll()
    assert events.progress(NAME) == Progress()


def test_the_progress_has_the_figures_of_the_last_steps_and_the_time_left(file: Path, tmp_path: Path) -> None:
    events = EventFiles.of_job(str(tmp_path), [NAME])
    figures = {"num_steps": 50, "loss": 0.5, "accuracy": 0.75, "images_per_second": 64.0, "seconds": 6.0}
    add(file, line(event="start") + line(event="steps", time=10.0, first_step=1, last_step=2, **figures))
    events.poll()
    assert events.progress(NAME) == Progress(
        step=2, num_steps=50, loss=0.5, accuracy=0.75, images_per_second=64.0, seconds_left=None
    ), "the first steps include the compilation, so that they have no pace"
    add(file, line(event="steps", time=30.0, first_step=3, last_step=10, **figures))
    events.poll()
    assert events.progress(NAME).seconds_left == 100.0, "by the clock, with what happened between the calls"
    # A process that restarts first compiles again, and that is no part of its pace.
    add(file, line(event="start", time=900.0) + line(event="steps", time=910.0, first_step=6, last_step=7, **figures))
    add(file, line(event="steps", time=913.0, first_step=8, last_step=10, **figures))
    events.poll()
    assert events.progress(NAME).seconds_left == 40.0


@pytest.mark.parametrize("junk", ["x", None, True, float("nan"), float("inf"), [1], {}, -5])
def test_figures_that_are_not_numbers_are_left_out(file: Path, tmp_path: Path, junk: Any) -> None:
    events = EventFiles.of_job(str(tmp_path), [NAME])
    names = ("first_step", "last_step", "num_steps", "loss", "accuracy", "images_per_second", "seconds")
    for broken in names:
        add(file, line(event="steps", **(dict.fromkeys(names, 3) | {broken: junk})))
    events.poll()
    figures = events.progress(NAME)
    assert json.loads(json.dumps(vars(figures), allow_nan=False)) == vars(figures)
    assert figures.seconds_left is None or figures.seconds_left >= 0


def test_a_line_without_an_end_is_not_kept(file: Path, tmp_path: Path) -> None:
    events = EventFiles.of_job(str(tmp_path), [NAME])
    with file.open("wb") as stream:
        stream.truncate(200 << 20)
    tracemalloc.start()
    assert not events.poll()
    assert tracemalloc.get_traced_memory()[1] < 30 << 20
    tracemalloc.stop()
    add(file, "\n" + line(event="steps", last_step=5, num_steps=20))
    assert events.poll()


def test_a_pipe_in_place_of_the_log_is_not_waited_for(file: Path, tmp_path: Path) -> None:
    os.mkfifo(file)
    assert [*EventFiles.of_job(str(tmp_path), [NAME])._new(NAME, file)] == []


@pytest.mark.parametrize("junk", ["NaN", "1e999", "-1e308", "1" + 400 * "0", "null", "{}", "true"])
@pytest.mark.parametrize("field", ["seconds", "first_step", "last_step", "num_steps", "loss", "step", "time"])
def test_a_job_with_wrong_numbers_in_its_events_has_a_goodput_of_finite_numbers(
    file: Path, tmp_path: Path, field: str, junk: str
) -> None:
    events = EventFiles.of_job(str(tmp_path), [NAME])
    fields = {"seconds": 0.1, "first_step": 1, "last_step": 5, "num_steps": 20, "loss": 1.0, "step": 5}
    for name in ("steps", "save", "restore", "evaluate", "steps"):
        add(file, line(event=name, **fields))
        add(file, json.dumps({"time": 1.5, "event": name, **fields} | {field: "JUNK"}).replace('"JUNK"', junk) + "\n")
    events.poll()
    found = goodput({NAME: [Span(start=0.0, end=9.0)]}, events, num_failures=1, end=9.0)
    assert json.dumps(found, allow_nan=False)


def test_a_file_without_an_end_is_read_in_parts(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_files, "_MAX_CHUNKS", 2)
    events, steps = EventFiles.of_job(str(tmp_path), [NAME]), line(event="steps", last_step=5, num_steps=20)
    with file.open("w") as stream:
        stream.write(steps)
        stream.seek(5 * event_files._CHUNK_BYTES)
        stream.write("\n" + steps)
    numbers = []
    for _ in range(4):
        events.poll()
        numbers.append(len(events.of(NAME)))
    assert (numbers[0], numbers[-1]) == (1, 2)
    # Reading all of it would take hours.
    os.truncate(file, 1 << 42)
    events.poll()
    assert len(events.of(NAME)) == 2
