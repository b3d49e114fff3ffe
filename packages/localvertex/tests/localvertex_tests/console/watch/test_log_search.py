"""The search in a whole log: what the page shows is found at its offset, whatever the file is or becomes."""

import itertools
import os
import random
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.support import run_records

from localvertex.api.custom_jobs.custom_jobs import CustomJobs
from localvertex.api.rest.errors import ApiError
from localvertex.api.rest.store import Store
from localvertex.console.jobs.routes import JobRoutes
from localvertex.console.local_route import LocalCall
from localvertex.console.runs import log_search, logs
from localvertex.console.runs.record import WatchedRuns
from localvertex.console.runs.routes import RunRoutes
from localvertex.runner.engine import Options

NAME = "run-00001"

STRANGE: dict[bytes, list[int]] = {
    b"plain needle NEEDLE": [6, 13],
    b"\x1b[31mred nee\x1b[0m\x1b[1mdle\x1b[0m \x1b]0;needle\x07title": [9],
    b"needle 1%\rneedle 2%\r3% of needle": [26],
    b"needle\r\r": [0],
    "bell\x07needle \u202ereversed\u200e \u00fc needle".encode(): [5, 30],
    b"\x1bneedle \x1b[ needle \x1b": [1],
    b"nul\0needle\x1a": [4],
    b"\xff\xe2\x80needle\xc3": [3],
    b"nothing here": [],
    b"": [],
}
"""Lines, and where `needle` begins in the text that the page shows of them."""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the path of the log of the step `train`."""
    content = run_records.run_record(tmp_path, NAME, "2026-01-01T00:01:00.000Z")
    run_records.write(tmp_path / NAME / "run.json", content)
    (tmp_path / NAME / "train").mkdir()
    return tmp_path / NAME / "train" / "log.txt"


def ask(log: Path, text: str, **places: int) -> dict[str, Any]:
    """Search once."""
    query = {"search": text, **{name: str(value) for name, value in places.items()}}
    return log_search.answer(log.parents[1], "train", query)


def backward(log: Path, text: str) -> list[int]:
    """Search from the end to the beginning."""
    found: list[int] = []
    before: dict[str, int] = {}
    while True:
        answer = ask(log, text, **before)
        found[:0] = answer["matches"]
        if answer["is_last"]:
            return found
        assert answer["begin"] < before.get("before", answer["size"])
        before = {"before": answer["begin"]}


def forward(log: Path, text: str, offset: int = 0) -> list[int]:
    """Search from an offset to the end."""
    found: list[int] = []
    while True:
        answer = ask(log, text, offset=offset)
        found += answer["matches"]
        if answer["is_last"]:
            return found
        assert answer["end"] > offset
        offset = answer["end"]


def test_what_is_shown_is_found_at_its_offset_in_both_directions(log: Path) -> None:
    lines = random.Random(1).choices([*STRANGE], k=30_000)
    log.write_bytes(b"\n".join(lines))
    starts = itertools.accumulate((len(each) + 1 for each in lines), initial=0)
    expected = [start + column for start, line in zip(starts, lines, strict=False) for column in STRANGE[line]]
    assert log.stat().st_size > 2 * log_search._BLOCK_BYTES
    assert backward(log, "NEEDLE") == expected
    assert forward(log, "needle") == expected


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("ÜBER", "x über", 2),
        (".*", "a.*", 1),
        ("\\u0007", "bell\x07", 4),
        ("u0007x", "\x07x", 0),
        ("ab", "a\x1b[0mb", 0),
        ("b", "a\x1b[0mb", 5),
        ("\N{REPLACEMENT CHARACTER}", "x\x1a", 1),
    ],
)
def test_a_text_is_plain_and_its_case_does_not_matter(log: Path, text: str, line: str, column: int) -> None:
    log.write_text(f"first\n{line}\n")
    assert backward(log, text) == forward(log, text) == [6 + len(line[:column].encode())]


def test_what_is_hidden_is_not_found(log: Path) -> None:
    log.write_text("\x1b[31mred\x1b[0m\nworking 1%\rdone\n")
    for text in ("31m", "working", "[", "\u212a"):
        assert backward(log, text) == []


def test_a_line_that_grows_is_searched_again_and_nothing_is_found_twice(log: Path) -> None:
    log.write_text("error\nan err")
    first = ask(log, "error")
    assert (first["matches"], first["begin"], first["end"], first["is_last"]) == ([0], 0, 6, True)
    with log.open("a") as file:
        file.write("or\nno")
    later = ask(log, "error", offset=first["end"])
    assert (later["matches"], later["end"], later["is_last"]) == ([9], 15, True)
    assert ask(log, "error", offset=later["end"])["matches"] == []
    os.truncate(log, 3)
    shrunk = ask(log, "error", offset=later["end"])
    assert (shrunk["matches"], shrunk["size"], shrunk["is_last"]) == ([], 3, True)


def test_each_answer_about_a_line_of_2_gb_reads_a_part_of_it(log: Path) -> None:
    size = 2 << 30
    with log.open("wb") as file:
        file.truncate(size)
        file.seek(size)
        file.write("ü".encode() * 200_000 + b"needle" + b"u" * (log_search._BLOCK_BYTES - 3))
    place = size + 400_000
    last = ask(log, "needle")
    assert last["begin"] > 0
    found = [*last["matches"]]
    while last["begin"] > size - 1000:
        last = ask(log, "needle", before=last["begin"])
        found += last["matches"]
    assert set(found) == {place}
    first = ask(log, "\\u0000" * 30, offset=0)
    assert not first["is_last"]
    assert first["matches"][:3] == [0, 30, 60]
    # The match is in two blocks: the search after either of its parts continues in the middle of the line.
    for part in (1, 5):
        answer = ask(log, "needle", offset=place + part - log_search._BLOCK_BYTES)
        assert place in answer["matches"]
    tracemalloc.start()
    assert not ask(log, "needle", offset=0)["is_last"]
    assert tracemalloc.get_traced_memory()[1] < 64 << 20
    tracemalloc.stop()


def test_a_text_that_is_everywhere_takes_a_bounded_time_in_each_answer(log: Path) -> None:
    # One line, with tokens and matches in alternation: the worst case for finding offsets.
    log.write_text("\x1b[0ma" * 120_000)
    answer = ask(log, "a")
    assert len(answer["matches"]) < 70_000
    assert backward(log, "a") == list(range(4, 600_000, 5))


def test_no_search_leads_out_of_a_run_or_waits_for_a_pipe(log: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    log.symlink_to(tmp_path / "secret.txt")
    assert ask(log, "secret")["matches"] == []
    with pytest.raises(ApiError, match="is not found"):
        logs.download(log.parents[1], "train", {})
    log.unlink()
    os.mkfifo(log)
    assert ask(log, "secret")["is_last"]
    with pytest.raises(ApiError, match="is not found"):
        logs.download(log.parents[1], "train", {"file": "log.txt"})
    for query in ({}, {"search": ""}, {"search": "x" * 201}, {"search": "a\nb"}, {"search": "x", "before": "-1"}):
        with pytest.raises(ApiError, match="expected"):
            log_search.answer(log.parents[1], "train", query)
    with pytest.raises(ApiError, match="is not found"):
        log_search.answer(log.parents[1], "../..", {"search": "x"})


def test_the_piece_around_an_offset_has_its_whole_line(log: Path) -> None:
    lines = [f"line {number} ä\n" for number in range(60_000)]
    log.write_text("".join(lines))
    starts = [0, *itertools.accumulate(len(each.encode()) for each in lines)]
    for number in (0, 1, 30_000, 59_999):
        for at in (starts[number], starts[number] + 7):
            found = logs.piece(log, around=at)
            assert found is not None
            assert found.text.startswith("line ")
            data = found.text.encode()
            assert data[starts[number] - found.offset :].startswith(lines[number].encode())
            assert found.end - found.offset == len(data) <= logs.MOST_BYTES
    log.write_bytes(b"x" * 1_000_000)
    found = logs.piece(log, around=500_000)
    assert found is not None
    assert found.offset < 500_000 < found.end
    beyond = logs.piece(log, around=9 << 40)
    assert beyond is not None
    assert beyond.end == 1_000_000


def test_the_routes_of_runs_and_of_jobs_of_the_api_search_and_download(tmp_path: Path) -> None:
    store = Store(tmp_path)
    jobs = CustomJobs(store, print, Options(work_dir=tmp_path))
    fields = {"name": "projects/p/locations/l/customJobs/7", "state": "JOB_STATE_SUCCEEDED", "jobSpec": {}}
    store.write("customJobs", "7", run_records.job_record("7", "2026-01-01T00:01:00.000Z") | fields)
    content = run_records.run_record(tmp_path, NAME, "2026-01-01T00:01:00.000Z")
    run_records.write(tmp_path / NAME / "run.json", content)
    folder = jobs.find("7")[1]
    run, job = RunRoutes(WatchedRuns(store)), JobRoutes(WatchedRuns(store), jobs)
    of_run, of_job = (
        (run.log, run.log_search, run.log_file),
        (job.log_of_api, job.log_search_of_api, job.log_file_of_api),
    )
    for log, methods, number, query in (
        (tmp_path / NAME / "train" / "log.txt", of_run, NAME, {"task": "train"}),
        (folder / "workerpool0-0.log", of_job, "7", {}),
        (folder / "workerpool1-0.log", of_job, "7", {"file": "workerpool1-0.log"}),
    ):
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"one\n{log.name}\n")
        piece, search, file = methods
        assert piece(LocalCall(path={"id": number}, query=query | {"around": "4"}))["text"] == log.read_text()
        assert search(LocalCall(path={"id": number}, query=query | {"search": log.name}))["matches"] == [4]
        saved = file(LocalCall(path={"id": number}, query=query)).headers
        assert saved["Content-Length"] == str(log.stat().st_size)
        assert saved["Content-Disposition"].endswith(log.name)
