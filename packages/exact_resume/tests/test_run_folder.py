"""What a process of a run has of its folder: nothing is written for another run, nor before the lease is taken."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exact_resume.checkpoints import checkpoints, result_file
from exact_resume.checkpoints.checkpoints import Best, Checkpoint
from exact_resume.checkpoints.lease import LEASE_FILE, Lease
from exact_resume.errors import InputError
from exact_resume.events import log as event_log
from exact_resume.run_folder import RunFolder
from exact_resume.workers.deadline import TimedOut
from exact_resume.workers.signals import StopRequest


@contextlib.contextmanager
def opened(path: Path, *, is_chief: bool = True, seed: int = 0, stop: StopRequest | None = None) -> Iterator[RunFolder]:
    """Yield a folder before it is taken, and close it."""
    folder = RunFolder(
        str(path),
        {"seed": seed},
        is_chief=is_chief,
        stop=stop or StopRequest(),
        report=print,
        observer=lambda event, **fields: None,
        defaults={},
        way_on="use another folder",
    )
    folder.open(event_log.PRIMARY if is_chief else "workerpool1-0", watchdog_seconds=0)
    with contextlib.closing(folder):
        yield folder


def checkpoint(step: int, seed: int = 0) -> Checkpoint:
    arrays = [np.full(3, step)]
    return Checkpoint(step=step, best=Best(), identity={"seed": seed}, run_id="a", arrays=arrays)


def names(path: Path) -> list[str]:
    return sorted(str(each.relative_to(path)) for each in path.rglob("*"))


def test_nothing_is_written_before_the_lease_is_taken(tmp_path: Path) -> None:
    with opened(tmp_path / "run") as folder:
        folder.notice("early")
        assert not (tmp_path / "run").exists()
        folder.take()
        folder.log_start(num_steps=1)
        found = [event["event"] for event in event_log.read(str(tmp_path / "run"))]
        assert found == ["notice", "start"]


def test_a_start_that_was_refused_logs_no_end(tmp_path: Path) -> None:
    with opened(tmp_path / "run") as folder:
        folder.take()
        folder.log_exit(2)
    assert names(tmp_path / "run") == []


@pytest.mark.parametrize("owner", ["checkpoint", "lease", "result"])
def test_the_folder_of_another_run_is_refused_whatever_is_left_of_it(tmp_path: Path, owner: str) -> None:
    if owner == "checkpoint":
        checkpoints.save(str(tmp_path), checkpoint(1, seed=7))
    elif owner == "lease":
        Lease(str(tmp_path)).take({"seed": 7})
    else:
        result_file.write(
            str(tmp_path), run_id="a", identity={"seed": 7}, final_step=1, stop_reason="done", best_step=1
        )
    before = names(tmp_path)
    with opened(tmp_path) as folder, pytest.raises(InputError, match="seed is 7 there and 0 here; use another folder"):
        folder.refuse_other_run()
    assert names(tmp_path) == before


def test_a_stop_ends_the_wait_for_another_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLOUD_ML_JOB_ID", "1")
    stop = StopRequest()
    with opened(tmp_path) as first, opened(tmp_path, stop=stop) as second:
        first.take()
        monkeypatch.setenv("CLOUD_ML_JOB_ID", "2")
        stop.signal_number = 15
        with opened(tmp_path, stop=stop) as other, pytest.raises(TimedOut) as raised:
            other.take()
        assert raised.value.exit_code == 143
        assert not other.lease.is_taken
        # A restart of the same job takes over at once.
        second.take()
        assert second.lease.is_taken


def test_workers_get_the_checkpoint_of_the_chief_or_are_refused(tmp_path: Path) -> None:
    checkpoints.save(str(tmp_path), checkpoint(1))
    checkpoints.save(str(tmp_path), checkpoint(2))
    (tmp_path / "step-000000002" / checkpoints.VARIABLES_FILE).write_bytes(b"torn")
    numbers: list[int] = []

    def of_chief(number: int) -> int:
        numbers.append(number)
        return numbers[0]

    with opened(tmp_path) as chief, opened(tmp_path, is_chief=False) as worker:
        chief.take()
        found: list[Any] = [each.newest(of_chief) for each in (chief, worker)]
        assert [each.step for each in found] == [1, 1]
        assert "step-000000002 is damaged" in event_log.read(str(tmp_path))[0]["message"]
        writer = worker.writer(best=Best(), saved_step=1, keep=1)
        writer.write(checkpoint(3), pause_seconds=0.0)
        writer.finish()
        assert checkpoints.steps(str(tmp_path)) == [2, 1]
        numbers[:] = [2]
        with pytest.raises(InputError, match=r"the chief resumes from step-000000002 of .* one shared folder"):
            worker.newest(of_chief)


def test_the_last_holder_is_kept_with_a_checkpoint_and_forgotten_without(tmp_path: Path) -> None:
    for has_checkpoint in (False, True):
        with opened(tmp_path) as folder:
            folder.take()
            if has_checkpoint:
                checkpoints.save(str(tmp_path), checkpoint(1))
        assert (tmp_path / LEASE_FILE).exists() is has_checkpoint
