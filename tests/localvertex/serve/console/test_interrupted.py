"""A deletion that was interrupted by the end of its server is completed by the next one."""

from pathlib import Path

from localvertex.engine import Options
from localvertex.serve.api.operations import Operations
from localvertex.serve.api.store import Store
from localvertex.serve.pipeline_jobs.pipeline_jobs import PipelineJobs
from localvertex.state import executor_files, run_folder
from tests.support import run_records


def test_what_is_left_of_a_deleted_run_goes_and_everything_else_stays(tmp_path: Path) -> None:
    half, running, whole = (run_records.write_job(tmp_path, number) for number in (1, 2, 3))
    for each in (half, running):
        (tmp_path / each / "train").mkdir()
        (tmp_path / each / "train" / executor_files.INPUT).write_text("{}")
        (tmp_path / each / "run.json").unlink()
    elsewhere = tmp_path / "folder-of-a-user"
    elsewhere.mkdir()
    store = Store(tmp_path)
    jobs = PipelineJobs(store, Operations(store), print, Options(work_dir=tmp_path))
    with run_folder.lock(tmp_path / running):
        jobs.complete_deletions()
    assert [each for each in (half, running, whole) if (tmp_path / each).exists()] == [running, whole]
    assert sorted(store.signatures("pipelineJobs")) == [running, whole]
    assert elsewhere.is_dir()
