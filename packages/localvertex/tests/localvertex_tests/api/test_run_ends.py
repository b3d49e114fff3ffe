"""The end of a run on a full disk reaches its record, even if another process looks at the run meanwhile."""

import fcntl
from collections.abc import Callable
from functools import partial
from pathlib import Path

from localvertex_tests.support import run_records

from localvertex.api.pipeline_jobs.run_files import write_end
from localvertex.api.rest.store import Store
from localvertex.store import record

CREATED = "2026-01-01T00:00:00.000Z"


def runs(work_dir: Path, **fields: object) -> Callable[[str], dict[str, object]]:
    """Write the record of a running run, and return its record by state."""

    def content(state: str) -> dict[str, object]:
        return run_records.run_record(work_dir, "ended", CREATED, state=state) | {"resume_times": []} | fields

    run_records.write(work_dir / "ended" / record.FILE, content("RUNNING"))
    (work_dir / "ended" / record.LOCK).touch()
    return content


def test_the_end_is_written_also_when_it_was_tried_while_the_lock_was_probed(tmp_path: Path) -> None:
    run_dir, content = tmp_path / "ended", runs(tmp_path)
    store = Store(tmp_path)
    with (run_dir / record.LOCK).open("r+") as probe:
        # As `record.is_running` does at the page of the run, twice per second.
        fcntl.flock(probe, fcntl.LOCK_SH | fcntl.LOCK_NB)
        store.later(partial(write_end, run_dir, content("CANCELLED")))
        store.close()
        assert '"RUNNING"' in (run_dir / record.FILE).read_text()
    store.close()
    assert record.read(run_dir)["state"] == "CANCELLED"


def test_the_end_of_a_run_that_was_resumed_meanwhile_is_dropped(tmp_path: Path) -> None:
    run_dir, content = tmp_path / "ended", runs(tmp_path, resume_times=[CREATED])
    write_end(run_dir, content("CANCELLED") | {"resume_times": []})
    assert record.read(run_dir)["end_time"] is None
