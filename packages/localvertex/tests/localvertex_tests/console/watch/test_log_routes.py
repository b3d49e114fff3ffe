"""Pieces of logs and whole logs, of runs and of jobs of the API, and the report of a run, to save."""

import itertools
import os
from pathlib import Path

import pytest
from localvertex_tests.support import run_records

from localvertex.api.jobs.custom_jobs import CustomJobs
from localvertex.api.rest.errors import ApiError
from localvertex.api.rest.store import Store
from localvertex.console.local_route import LocalCall
from localvertex.console.runs import routes
from localvertex.console.runs.record import WatchedRuns
from localvertex.console.runs.routes import RunRoutes
from localvertex.runner.engine import Options
from localvertex.show.view import logs

NAME = "run-00001"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return the path of the log of the step `train`."""
    content = run_records.run_record(tmp_path, NAME, "2026-01-01T00:01:00.000Z")
    run_records.write(tmp_path / NAME / "run.json", content)
    (tmp_path / NAME / "train").mkdir()
    return tmp_path / NAME / "train" / "log.txt"


def test_no_log_leads_out_of_a_run_or_waits_for_a_pipe(log: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    log.symlink_to(tmp_path / "secret.txt")
    with pytest.raises(ApiError, match="is not found"):
        routes.whole_log(log.parents[1], "train", {})
    log.unlink()
    os.mkfifo(log)
    with pytest.raises(ApiError, match="is not found"):
        routes.whole_log(log.parents[1], "train", {"file": "log.txt"})
    with pytest.raises(ApiError, match="is not found"):
        routes.whole_log(log.parents[1], "../..", {})


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


def test_the_routes_of_runs_and_of_jobs_of_the_api_read_and_download(tmp_path: Path) -> None:
    store = Store(tmp_path)
    jobs = CustomJobs(store, print, Options(work_dir=tmp_path))
    fields = {"name": "projects/p/locations/l/customJobs/7", "state": "JOB_STATE_SUCCEEDED", "jobSpec": {}}
    store.write("customJobs", "7", run_records.job_record("7", "2026-01-01T00:01:00.000Z") | fields)
    content = run_records.run_record(tmp_path, NAME, "2026-01-01T00:01:00.000Z")
    run_records.write(tmp_path / NAME / "run.json", content)
    folder = jobs.find("7")[1]
    answers = RunRoutes(WatchedRuns(store), jobs)
    for log, path, query in (
        (tmp_path / NAME / "train" / "log.txt", {"kind": "runs", "id": NAME}, {"task": "train"}),
        (folder / "workerpool0-0.log", {"kind": "jobs", "id": "7"}, {}),
        (folder / "workerpool1-0.log", {"kind": "jobs", "id": "7"}, {"file": "workerpool1-0.log"}),
    ):
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(f"one\n{log.name}\n")
        assert answers.log(LocalCall(path=path, query=query | {"around": "4"}))["text"] == log.read_text()
        saved = answers.log_file(LocalCall(path=path, query=query)).headers
        assert saved["Content-Length"] == str(log.stat().st_size)
        assert saved["Content-Disposition"].endswith(log.name)
    with pytest.raises(ApiError, match="is not found"):
        answers.log(LocalCall(path={"kind": "models", "id": NAME}, query={"task": "train"}))


def test_the_report_of_a_run_is_saved_and_no_other_file_in_its_place(tmp_path: Path) -> None:
    store = Store(tmp_path)
    answers = RunRoutes(WatchedRuns(store), CustomJobs(store, print, Options(work_dir=tmp_path)))
    run_dir = tmp_path / NAME
    run_records.write(run_dir / "run.json", run_records.run_record(tmp_path, NAME, "2026-01-01T00:01:00.000Z"))
    call = LocalCall(path={"id": NAME})
    with pytest.raises(ApiError, match="is not found"):
        answers.report(call)
    page = run_dir / "run.html"
    page.write_text("<script>alert(1)</script>")
    headers = answers.report(call).headers
    assert headers["Content-Type"] == "application/octet-stream"
    assert headers["Content-Disposition"] == "attachment; filename*=UTF-8''run.html"
    assert headers["Content-Security-Policy"].startswith("sandbox; default-src 'none';")
    page.unlink()
    page.symlink_to("/etc/hostname")
    with pytest.raises(OSError, match="symbolic link"):
        answers.report(call)
