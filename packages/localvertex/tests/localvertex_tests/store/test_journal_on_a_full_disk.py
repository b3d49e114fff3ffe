"""A journal that cannot be written ends the run in one line, and loses nothing that was reported."""

import json
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from localvertex_tests.support.journal import Listener, states

import localvertex
from localvertex.errors import RecordNotWritten
from localvertex.store import record
from vertex_testing.runs import Command


@pytest.fixture
def small_files(file: Path) -> Iterator[None]:
    """Let no file of this process grow beyond 12 kB: as on a full disk, a write ends in the middle of a line."""
    file.touch()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, previous)


def test_a_full_disk_stops_the_run_in_one_line_and_loses_nothing_that_was_reported(
    file: Path, work_dir: Path, tmp_path: Path, small_files: None
) -> None:
    (tmp_path / "there").touch()
    reported: dict[str, str] = {}
    parameters = {"there": str(tmp_path / "there"), "numbers": [*range(12)]}
    options = localvertex.Options(work_dir=work_dir, run_id="full")
    with pytest.raises(RecordNotWritten, match=r"cannot write to .*/full: File too large; .* --resume full resumes it"):
        localvertex.run(
            file,
            parameters=parameters,
            options=options,
            display=Listener(lambda task: reported.update({task.label: str(task.state)})),
        )
    assert not record.is_running(work_dir / "full")
    content = record.read(work_dir / "full")
    assert content["state"] == "FAILED"
    assert reported.items() <= states(content).items()
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    resumed = localvertex.resume("full", options=localvertex.Options(work_dir=work_dir))
    assert resumed["state"] == "SUCCEEDED"
    done = {path for path, state in reported.items() if state == "SUCCEEDED"}
    assert done <= {each["path"] for each in resumed["tasks"] if each["restored"]}


def test_the_command_reports_a_full_disk_in_one_line(
    file: Path, command: Command, tmp_path: Path, small_files: None
) -> None:
    numbers = json.dumps([*range(12)])
    parameters = ("--parameter", f"there={tmp_path}", "--parameter", f"numbers={numbers}")
    done = command("run", file, "--run-id", "full", *parameters)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(f"error: cannot write to {tmp_path}/runs/full: File too large; ")
