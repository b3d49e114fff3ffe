"""Deletions at odd times: one that its server did not complete, and one right after the last record of a run."""

import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.support import run_records

from localvertex.api.metadata.metadata import Metadata
from localvertex.api.pipeline_jobs.pipeline_jobs import PipelineJobs
from localvertex.api.rest.call import Call, Location
from localvertex.api.rest.errors import ApiError
from localvertex.api.rest.store import Store
from localvertex.runner.engine import Options
from localvertex.show import report
from localvertex.store import executor_files, record, run_folder
from vertex_testing.server import wait_until


def started(work_dir: Path) -> tuple[Store, PipelineJobs]:
    """Return the jobs of a server."""
    store = Store(work_dir)
    metadata = Metadata(store).runs
    return store, PipelineJobs(store, print, Options(work_dir=work_dir), metadata)


def test_what_is_left_of_a_deleted_run_goes_and_everything_else_stays(tmp_path: Path) -> None:
    half, running, whole = (run_records.write_job(tmp_path, number) for number in (1, 2, 3))
    for each in (half, running):
        (tmp_path / each / "train").mkdir()
        (tmp_path / each / "train" / executor_files.INPUT).write_text("{}")
        (tmp_path / each / "run.json").unlink()
    elsewhere = tmp_path / "folder-of-a-user"
    elsewhere.mkdir()
    store, jobs = started(tmp_path)
    with run_folder.lock(tmp_path / running):
        jobs.complete_deletions()
    assert [each for each in (half, running, whole) if (tmp_path / each).exists()] == [running, whole]
    assert store.ids("pipelineJobs") == [running, whole]
    assert elsewhere.is_dir()


@pytest.mark.parametrize("is_api", [False, True])
def test_a_run_whose_page_is_being_written_is_deleted_as_soon_as_it_has_ended(
    tmp_path: Path, light_pipeline: dict[str, Any], monkeypatch: pytest.MonkeyPatch, is_api: bool
) -> None:
    is_writing, may_write, write = threading.Event(), threading.Event(), report.write

    def late(*given: Any) -> None:
        is_writing.set()
        may_write.wait()
        write(*given)

    monkeypatch.setattr(report, "write", late)
    _, jobs = started(tmp_path)
    location = Location(project="p", region="us-central1")
    jobs.start(location, {"pipelineSpec": light_pipeline}, "one")
    call = Call(location=location, resource_id="one")
    delete = partial(jobs.delete, call) if is_api else partial(jobs.remove, "one")
    assert is_writing.wait(240)
    assert record.read(tmp_path / "one")["state"] == "RUNNING"
    with pytest.raises(ApiError, match="running"):
        delete()
    may_write.set()
    wait_until(lambda: record.read(tmp_path / "one")["state"] == "SUCCEEDED")
    delete()
    assert not (tmp_path / "one").exists()
