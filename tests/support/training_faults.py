"""Faults of a training job at random moments: each returns what happened, for a table of outcomes.

A fault raises `TooLate` if the run was finished before, and an AssertionError if it has a forbidden effect.
"""

import contextlib
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from exact_resume.checkpoints import checkpoints, lease, manifest, result_file
from exact_resume.checkpoints.result_file import is_finished
from exact_resume.events import log as event_log
from exact_resume.files import publication, storage
from exact_resume.run_folder import RunFolder
from tests.support.disturbed_run import START_SECONDS, DisturbedRun, TooLate
from tests.support.forked_job import ForkedJob, kill_at, wait_in_save

_FAILED, _MISTAKE, _LOST, _KILLED, _PREEMPTED = 1, 2, 134, 137, 143
_MAX_CALLS = 8
_CHANCE_OF_THE_FOLDER = 0.25
_AT_START = ((lease.Lease, "take"), (RunFolder, "newest"), (storage, "remove_partial"))
_BEFORE_COMMIT = ((publication, "_flush_to_disk"), (checkpoints, "_manifest"))
_AFTER_COMMIT = ((checkpoints, "prune"), (checkpoints, "remove"), (result_file, "write"))


def kill_chief(run: DisturbedRun) -> str:
    """Kill the chief at a random moment."""
    with run.started(run.job()) as job:
        run.reach(job)
        job.workers[0].kill()
    return run.codes(job, {_KILLED, 0}, {_LOST, 0})


def kill_worker(run: DisturbedRun) -> str:
    """Kill the other worker at a random moment."""
    with run.started(run.job()) as job:
        run.reach(job)
        job.workers[1].kill()
    return run.codes(job, {_LOST, 0}, {_KILLED, 0})


def preempt(run: DisturbedRun) -> str:
    """Send SIGTERM to one machine, or to all."""
    with run.started(run.job()) as job:
        run.reach(job)
        for worker in run.draw.sample(job.workers, run.draw.randint(1, len(job.workers))):
            worker.send_signal(signal.SIGTERM)
    return run.codes(job, {_PREEMPTED, _LOST, 0})


def freeze(run: DisturbedRun) -> str:
    """Freeze the chief, or the whole job, until another job has taken over, or has ended."""
    is_early, is_chief_alone = run.draw.random() < 0.5, run.draw.random() < 0.5
    with run.started(run.job()) as first:
        run.reach_step(first, 1)
        if is_finished(str(run.folder)):
            raise TooLate
        _send(first, signal.SIGSTOP, num_workers=1 if is_chief_alone else None)
        num_starts = run.num_starts()
        with run.started(run.job(is_other=True)) as second:
            if is_early:
                second.wait(until=lambda: run.num_starts() > num_starts)
                _send(first, signal.SIGCONT)
        before = run.content()
        _send(first, signal.SIGCONT)
    assert not any(second.exit_codes[-1]), second.exit_codes
    if run.num_starts() == num_starts:
        # The first one was frozen when its result was written.
        raise TooLate
    ended = run.refused(first, "has taken over the run", {_FAILED}, {_FAILED, _LOST})
    assert run.content() == before, "the former job has changed something"
    events = run.events()
    taken_over = [place for place, event in enumerate(events) if event["event"] == "start"][num_starts]
    steps = [event["first_step"] for event in events[taken_over:] if event["event"] == "steps"]
    assert steps == sorted(set(steps)), "two jobs have logged steps"
    return ended


def _send(job: ForkedJob, number: int, *, num_workers: int | None = None) -> None:
    for worker in job.workers[:num_workers]:
        worker.send_signal(number)


def race(run: DisturbedRun) -> str:
    """Freeze a job during its start, and let it continue at any moment of another job: one of both finishes."""
    with run.started(run.job()) as first:
        time.sleep(run.draw.uniform(0, START_SECONDS))
        _send(first, signal.SIGSTOP)
        with run.started(run.job("--peer-timeout-seconds=20", is_other=True)) as second:
            run.reach(second)
            _send(first, signal.SIGCONT)
    ends = {name: job.exit_codes[-1] for name, job in (("first", first), ("second", second))}
    assert not all(map(any, ends.values())), ends
    if not any(map(any, ends.values())):
        return "both finished"
    name, job = ("first", first) if any(ends["first"]) else ("second", second)
    return f"{name}: {run.refused(job, 'job', {_FAILED}, {_FAILED, _LOST})}"


def second_trainer(run: DisturbedRun) -> str:
    """Start another job beside a live one, which waits in a save meanwhile."""
    released = run.folder.parent / f"{run.folder.name}-released"
    if is_finished(str(run.folder)):
        raise TooLate
    # A killed one may have left a save that was not committed.
    left = {*run.folder.glob(".step-*")}
    with run.started(run.job(deed=wait_in_save(released))) as first:
        try:
            first.wait(until=lambda: bool({*run.folder.glob(".step-*")} - left))
            before, num_starts = dict[str, bytes](), run.num_starts()
            # Until the files of the save are written.
            while before != (before := run.content()):
                time.sleep(1)
            with run.started(run.job("--peer-timeout-seconds=8", is_other=True)) as second:
                pass
            after = run.content()
            assert run.num_starts() == num_starts
        finally:
            released.touch()
    assert not any(first.exit_codes[-1]), first.exit_codes
    ended = run.refused(second, "nothing was changed here", {_FAILED}, {_LOST})
    assert after.keys() == before.keys(), "the second job has made or removed a file"
    # The first one still validates, and logs that.
    changed = [name for name in before if not after[name].startswith(before[name])]
    changed += [name for name in before if after[name] != before[name] and "events" not in name]
    assert not changed, f"the second job has changed {changed}"
    return ended


def freeze_at_restart(run: DisturbedRun) -> str:
    """Kill the other worker, and freeze the chief while the job starts again."""
    kill_worker(run)
    with run.started(run.job("--peer-timeout-seconds=5")) as job:
        job.workers[0].send_signal(signal.SIGSTOP)
        job.wait(until=lambda: job.workers[1].poll() is not None)
        job.workers[0].kill()
    return run.codes(job, {_KILLED}, {_LOST})


def fill_disk(run: DisturbedRun) -> str:
    """Fill the disk: before the start, from a random moment on, or for a short time."""
    kind, filler = run.draw.choice(("before the start", "for long", "for a moment")), run.folder / "filler"
    try:
        if is_filled := kind == "before the start":
            _fill(filler)
        with run.started(run.job()) as job:
            if not is_filled:
                run.reach(job)
                is_filled = job.workers[0].poll() is None
                _fill(filler)
            if kind == "for a moment":
                time.sleep(run.draw.uniform(0, 2))
                filler.unlink()
    finally:
        filler.unlink(missing_ok=True)
    if not any(job.exit_codes[-1]):
        if is_filled:
            return f"{kind}: finished"
        raise TooLate
    return f"{kind}: {run.refused(job, 'failed: ', {_FAILED}, {_FAILED, _LOST})}"


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        for size in (2**20, 4096):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))


def damage_newest(run: DisturbedRun) -> str:
    """Damage the newest checkpoint between two starts."""
    return _damage(run, run.require_checkpoint().step)


def damage_best(run: DisturbedRun) -> str:
    """Damage the best checkpoint between two starts; the newest one is intact."""
    return _damage(run, run.require_checkpoint(has_older_best=True).best.step)


def _damage(run: DisturbedRun, step: int) -> str:
    folder = run.folder / manifest.name(step)
    if run.draw.random() < _CHANCE_OF_THE_FOLDER:
        shutil.rmtree(folder)
        return "folder deleted"
    return _damage_file(run, folder / run.draw.choice((checkpoints.VARIABLES_FILE, manifest.MANIFEST_FILE)))


def damage_record(run: DisturbedRun) -> str:
    """Damage the lease, the result or the event log between two starts."""
    run.require_checkpoint()
    names = (lease.LEASE_FILE, result_file.RESULT_FILE, f"events/{event_log.part_name(event_log.PRIMARY, 0)}")
    path = run.folder / run.draw.choice([name for name in names if (run.folder / name).exists()])
    return f"{path.name} {_damage_file(run, path)}"


def _damage_file(run: DisturbedRun, path: Path) -> str:
    data, how = path.read_bytes(), run.draw.choice(("truncated", "flipped", "deleted"))
    if how == "truncated":
        path.write_bytes(data[: run.draw.randrange(len(data))])
    elif how == "flipped":
        place = run.draw.randrange(len(data))
        path.write_bytes(data[:place] + bytes([data[place] ^ 1 << run.draw.randrange(8)]) + data[place + 1 :])
    else:
        path.unlink()
    return how


def use_other_devices(run: DisturbedRun) -> str:
    """Resume on another number of devices."""
    run.require_checkpoint()
    if is_finished(str(run.folder)):
        raise TooLate
    before, machines = run.content(), run.draw.choice((1, 2))
    flags = ["--logical-cpu-devices=2"] * (machines == run.num_workers)
    with run.started(run.job(*flags, num_workers=machines)) as job:
        pass
    ended = run.refused(job, "which would give other weights", {_MISTAKE})
    assert run.content() == before, "the refused job has changed something"
    return ended


def die_at_start(run: DisturbedRun) -> str:
    """Kill the chief when it takes the lease, or finds the checkpoint to resume from."""
    return _die(run, _AT_START, 1)


def die_before_commit(run: DisturbedRun) -> str:
    """Kill the chief in a save that is not committed."""
    return _die(run, _BEFORE_COMMIT, run.draw.randint(1, _MAX_CALLS))


def die_after_commit(run: DisturbedRun) -> str:
    """Kill the chief when a save is committed, or about the result."""
    return _die(run, _AFTER_COMMIT, run.draw.randint(1, _MAX_CALLS))


def _die(run: DisturbedRun, points: tuple[tuple[Any, str], ...], call: int) -> str:
    owner, name = run.draw.choice(points)
    call = 1 if owner is result_file else call
    with run.started(run.job(deed=kill_at(owner, name, after=run.draw.random() < 0.5, call=call))) as job:
        pass
    return run.codes(job, {_KILLED}, {_LOST, 0})


ALONE: dict[str, Callable[[DisturbedRun], str]] = {
    "SIGKILL of the chief": kill_chief,
    "SIGTERM of a machine or all": preempt,
    "killed at the start": die_at_start,
    "killed before a commit": die_before_commit,
    "killed after a commit": die_after_commit,
    "full disk, later room": fill_disk,
    "newest checkpoint damaged": damage_newest,
    "best checkpoint damaged": damage_best,
    "lease, result or event log damaged": damage_record,
    "other devices": use_other_devices,
}
"""Faults after which the run is not finished."""
TOGETHER: dict[str, Callable[[DisturbedRun], str]] = {
    "SIGKILL of the other worker": kill_worker,
    "worker killed, chief frozen at the restart": freeze_at_restart,
}
"""More of them, for two workers."""
LAST: dict[str, Callable[[DisturbedRun], str]] = {
    "frozen, taken over by another job": freeze,
    "frozen at its start, beside another job": race,
    "second job beside a live one": second_trainer,
}
"""Faults during which the run is finished."""
