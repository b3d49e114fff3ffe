"""The search in a whole log: lines as the page shows them are found, whatever the file is."""

import itertools
import os
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


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the path of the log of the step `train`."""
    content = run_records.run_record(tmp_path, NAME, "2026-01-01T00:01:00.000Z")
    run_records.write(tmp_path / NAME / "run.json", content)
    (tmp_path / NAME / "train").mkdir()
    return tmp_path / NAME / "train" / "log.txt"


def ask(log: Path, text: str) -> dict[str, Any]:
    """Search once."""
    return log_search.answer(log.parents[1], "train", {"search": text})


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("NEEDLE", b"plain needle"),
        ("needle", b"\x1b[31mred nee\x1b[0m\x1b[1mdle\x1b[0m"),
        ("needle", b"\xff\xe2\x80needle\xc3"),
        ("\u00dcBER", "x \u00fcber".encode()),
        (".*", b"a.*"),
        ("\N{REPLACEMENT CHARACTER}", b"\xff"),
    ],
)
def test_lines_are_found_as_they_are_shown_whatever_their_case(log: Path, text: str, line: bytes) -> None:
    log.write_bytes(b"first\n" + line + b"\nlast\n" + line)
    assert ask(log, text) == {
        "matches": [6, 6 + len(line) + 6],
        "begin": 0,
        "size": log.stat().st_size,
    }


def test_what_is_hidden_is_not_found(log: Path) -> None:
    log.write_text("\x1b[31mred\x1b[0m\x1b]0;title\x07\ndone\n")
    for text in ("31m", "title", "["):
        assert ask(log, text)["matches"] == []


def test_only_the_end_of_a_large_log_is_searched(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write_text("needle 1\nneedle 2\nneedle 3\n")
    monkeypatch.setattr(log_search, "_MAX_BYTES", 12)
    assert ask(log, "needle") == {"matches": [18], "begin": 18, "size": 27}
    monkeypatch.setattr(log_search, "_MAX_BYTES", 1000)
    monkeypatch.setattr(log_search, "_MAX_MATCHES", 2)
    assert ask(log, "needle")["matches"] == [9, 18]


def test_no_search_leads_out_of_a_run_or_waits_for_a_pipe(log: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    log.symlink_to(tmp_path / "secret.txt")
    assert ask(log, "secret")["matches"] == []
    with pytest.raises(ApiError, match="is not found"):
        logs.download(log.parents[1], "train", {})
    log.unlink()
    os.mkfifo(log)
    assert ask(log, "secret")["matches"] == []
    with pytest.raises(ApiError, match="is not found"):
        logs.download(log.parents[1], "train", {"file": "log.txt"})
    for query in ({}, {"search": ""}, {"search": "x" * 201}, {"search": "a\nb"}):
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
