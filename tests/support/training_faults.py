"""Faults of a training job at random moments: each ends an attempt, and the run is started again until it is finished.

A fault returns what happened, or raises `TooLate` if the run was finished before. An AssertionError is a defect.
"""

import contextlib
import itertools
import json
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.support.forked_job import Deed, ForkedJob, kill_at, wait_in_save
from trainer.checkpoints import checkpoints, lease, manifest, outcome
from trainer.checkpoints.identity import is_finished
from trainer.files import event_log, publication, storage
from trainer.loop import restore

LIMIT_SECONDS = 120
"""All machines have ended this long after a fault."""
_LOST, _KILLED, _PREEMPTED = 134, 137, 143
_EQUAL = ("run_id", "weights_sha256", "batch_digests", "best_step", "final_step", "stop_reason", "devices")
_EQUAL += ("validation_accuracy", "validation_loss", "lost_best_step", "metric", "score")
_AT_START = ((lease.Lease, "take"), (restore, "_find"), (storage, "remove_partial"))
_BEFORE_COMMIT = ((publication, "_flush_to_disk"), (checkpoints, "_manifest"))
_AFTER_COMMIT = ((checkpoints, "prune"), (checkpoints, "remove"), (outcome, "write_result"))


class TooLate(Exception):
    """The run was finished before the fault."""


class DisturbedRun:
    """One run with faults.

    Args:
        folder: Checkpoint directory, which exists; logs are beside it. It is a small disk if faults are to fill it.
        draw: Random numbers.
        arguments: Of `trainer.task`, without the checkpoint directory.
        num_workers: 1 or 2.
        undisturbed: Checkpoint directory of an equal run without faults.
        is_forked: Whether jobs are forked from this process.
    """

    def __init__(
        self,
        folder: Path,
        draw: random.Random,
        arguments: list[str],
        *,
        num_workers: int,
        undisturbed: Path,
        is_forked: bool = True,
    ) -> None:
        self.folder, self._draw, self._num_workers, self._undisturbed = folder, draw, num_workers, undisturbed
        self._arguments, self._is_forked = [*arguments, f"--checkpoint-directory={folder}"], is_forked
        self._wanted = json.loads((undisturbed / "result.json").read_text())
        self._ids = map(str, itertools.count(1))
        self._id = next(self._ids)

    # Starts and moments.

    def _job(self, *flags: str, deed: Deed | None = None, num_workers: int = 0, is_other: bool = False) -> ForkedJob:
        """Return the same job or, perhaps, another one: the next start of the run."""
        if is_other or self._draw.random() < 0.5:
            self._id = next(self._ids)
        words = [*self._arguments, "--peer-timeout-seconds=60", *flags]
        is_forked = self._is_forked or deed is not None
        return ForkedJob(
            self.folder, words, num_workers or self._num_workers, job_id=self._id, deed=deed, is_forked=is_forked
        )

    @contextlib.contextmanager
    def _started(self, job: ForkedJob) -> Iterator[ForkedJob]:
        """Start a job; in the end wait for all machines."""
        job.start()
        try:
            yield job
            codes = job.wait_for_all(LIMIT_SECONDS)
            assert None not in codes, f"after {LIMIT_SECONDS} s the exit codes are {codes}"
        finally:
            job.end()

    def _reach(self, job: ForkedJob) -> None:
        """Wait until a random moment of the start, or until a random step."""
        if self._draw.random() < 0.25:
            until = time.monotonic() + self._draw.uniform(0, 3)
            job.wait(until=lambda: time.monotonic() >= until)
            return
        first = max(checkpoints.steps(str(self.folder)), default=0)
        step, num_starts = self._draw.randint(first + 1, max(first + 1, self._wanted["final_step"])), self._num_starts()
        job.wait(until=lambda: self._num_starts() > num_starts and job.last_step() >= step)

    def _num_starts(self) -> int:
        return len(self._events("start"))

    def _events(self, name: str) -> list[dict]:
        return [event for event in event_log.read(str(self.folder)) if event["event"] == name]

    def _content(self) -> dict[str, bytes]:
        """Return the content of all files but those of TensorBoard, which are written in the background."""
        paths = [path for path in self.folder.rglob("*") if path.is_file() and "tensorboard" not in path.parts]
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in paths}

    def _ended(self, job: ForkedJob, *expected: set[int]) -> str:
        """Return the exit codes of the machines; each is one of the expected ones."""
        codes = [-code if code is not None and code < 0 else code for code in job.exit_codes[-1]]
        found = [128 + code if code and job.exit_codes[-1][place] < 0 else code for place, code in enumerate(codes)]
        if not any(found):
            raise TooLate
        for place, code in enumerate(found):
            assert code in expected[min(place, len(expected) - 1)], f"the exit codes are {found}"
        return ", ".join(f"{name} {code}" for name, code in zip(("chief", "worker"), found, strict=False))

    def _refused(self, job: ForkedJob, text: str) -> None:
        """Check that the chief's last line is the expected one."""
        said = job.said(0)
        assert "Traceback" not in said, said[-3000:]
        assert text in said.strip().splitlines()[-1], said[-3000:]

    # Faults.

    def kill_chief(self) -> str:
        """Kill the chief at a random moment."""
        with self._started(self._job()) as job:
            self._reach(job)
            job.workers[0].send_signal(signal.SIGKILL)
        return self._ended(job, {_KILLED, 0}, {_LOST, 0})

    def kill_worker(self) -> str:
        """Kill the other worker at a random moment."""
        with self._started(self._job()) as job:
            self._reach(job)
            job.workers[1].send_signal(signal.SIGKILL)
        return self._ended(job, {_LOST, 0}, {_KILLED, 0})

    def preempt(self) -> str:
        """Send SIGTERM to one machine, or to all."""
        with self._started(self._job()) as job:
            self._reach(job)
            for worker in self._draw.sample(job.workers, self._draw.randint(1, len(job.workers))):
                worker.send_signal(signal.SIGTERM)
        return self._ended(job, {_PREEMPTED, _LOST, 0})

    def freeze(self) -> str:
        """Freeze a job that another one takes over; then let it continue, during the other one or afterwards."""
        is_early = self._draw.random() < 0.5
        with self._started(self._job()) as first:
            self._reach_step(first)
            for worker in first.workers:
                worker.send_signal(signal.SIGSTOP)
            num_starts = self._num_starts()
            with self._started(self._job(is_other=True)) as second:
                if is_early:
                    second.wait(until=lambda: self._num_starts() > num_starts)
                    self._wake(first)
            before = self._content()
            self._wake(first)
        assert not any(second.exit_codes[-1]), second.exit_codes
        ended = self._ended(first, {1}, {1, _LOST})
        self._refused(first, "has taken over the run")
        assert self._content() == before, "the former job has changed something"
        events = [event for event in event_log.read(str(self.folder)) if event["replica"] == "workerpool0-0"]
        starts = [place for place, event in enumerate(events) if event["event"] == "start"]
        steps = [event["first_step"] for event in events[starts[num_starts // self._num_workers] :] if "loss" in event and event["event"] == "steps"]
        assert steps == sorted(set(steps)), "two jobs have logged steps"
        return f"{ended}: refused"

    def _wake(self, job: ForkedJob) -> None:
        for worker in job.workers:
            worker.send_signal(signal.SIGCONT)

    def _reach_step(self, job: ForkedJob) -> None:
        num_starts = self._num_starts()
        job.wait(until=lambda: self._num_starts() >= num_starts + self._num_workers and job.last_step() > 0)

    def second_trainer(self) -> str:
        """Start another job beside a live one, which waits in a save meanwhile."""
        released = self.folder.parent / "released"
        with self._started(self._job(deed=wait_in_save(released))) as first:
            try:
                first.wait(until=lambda: any(self.folder.glob(".step-*")))
                before = {}
                while before != (before := self._content()):
                    time.sleep(1)
                with self._started(self._job("--peer-timeout-seconds=8", is_other=True)) as second:
                    pass
                after = self._content()
            finally:
                released.touch()
        assert not any(first.exit_codes[-1]), first.exit_codes
        ended = self._ended(second, {1}, {_LOST})
        self._refused(second, "nothing was changed here")
        assert after == before, "the second job has changed something"
        return f"{ended}: refused"

    def freeze_at_restart(self) -> str:
        """Kill the other worker, and freeze the chief while the job starts again."""
        self.kill_worker()
        with self._started(self._job("--peer-timeout-seconds=5")) as job:
            job.workers[0].send_signal(signal.SIGSTOP)
            job.wait(until=lambda: job.workers[1].poll() is not None)
            job.workers[0].kill()
        return self._ended(job, {_KILLED}, {_LOST})

    def fill_disk(self) -> str:
        """Fill the disk: before the start, from a random moment on, or for a short time."""
        kind = self._draw.choice(("before", "from", "for"))
        filler = self.folder / "filler"
        if kind == "before":
            _fill(filler)
        try:
            with self._started(self._job()) as job:
                if kind != "before":
                    self._reach(job)
                    _fill(filler)
                if kind == "for":
                    until = time.monotonic() + self._draw.uniform(0, 2)
                    job.wait(until=lambda: time.monotonic() >= until)
                    filler.unlink()
        finally:
            filler.unlink(missing_ok=True)
        ended = self._ended(job, {1, 0}, {1, _LOST, 0})
        self._refused(job, "failed: ")
        return f"{ended}: refused"

    def damage_newest(self) -> str:
        """Damage the newest checkpoint between two starts."""
        self._require_checkpoint()
        return self._damage(checkpoints.steps(str(self.folder))[0])

    def damage_best(self) -> str:
        """Damage the best checkpoint between two starts."""
        self._require_checkpoint(is_validated=True)
        return self._damage(checkpoints.best_step(str(self.folder)))

    def _damage(self, step: int) -> str:
        folder = self.folder / manifest.name(step)
        path = folder / self._draw.choice((checkpoints.VARIABLES_FILE, manifest.MANIFEST_FILE))
        data = path.read_bytes()
        how = self._draw.choice(("truncated", "flipped", "deleted", "folder deleted"))
        if how == "truncated":
            path.write_bytes(data[: self._draw.randrange(len(data))])
        elif how == "flipped":
            place = self._draw.randrange(len(data))
            path.write_bytes(data[:place] + bytes([data[place] ^ 1 << self._draw.randrange(8)]) + data[place + 1 :])
        elif how == "deleted":
            path.unlink()
        else:
            shutil.rmtree(folder)
        return how

    def _require_checkpoint(self, *, is_validated: bool = False) -> None:
        """Train until there is a checkpoint, and kill the job; that is not counted."""

        def is_there() -> bool:
            with contextlib.suppress(OSError, ValueError):
                return bool(checkpoints.best_step(str(self.folder)) if is_validated else checkpoints.steps(str(self.folder)))
            return False

        while not is_there():
            with self._started(self._job()) as job:
                job.wait(until=is_there)
                for worker in job.workers:
                    worker.kill()

    def use_other_devices(self) -> str:
        """Resume on another number of devices."""
        self._require_checkpoint()
        if (self.folder / "result.json").exists():
            raise TooLate
        before = self._content()
        machines = 3 - self._num_workers if self._draw.random() < 0.5 else self._num_workers
        flags = () if machines != self._num_workers else ("--logical-cpu-devices=2",)
        with self._started(self._job(*flags, num_workers=machines)) as job:
            pass
        ended = self._ended(job, {2})
        self._refused(job, "which give other weights")
        assert self._content() == before, "the refused job has changed something"
        return f"{ended}: refused"

    def die_at_start(self) -> str:
        """Kill the chief when it takes the lease, or finds the checkpoint to resume from."""
        return self._die(_AT_START, 1)

    def die_before_commit(self) -> str:
        """Kill the chief in a save that is not committed."""
        return self._die(_BEFORE_COMMIT, self._draw.randint(1, 8))

    def die_after_commit(self) -> str:
        """Kill the chief when a save is committed, or about the result."""
        return self._die(_AFTER_COMMIT, self._draw.randint(1, 8))

    def _die(self, points: tuple, call: int) -> str:
        owner, name = self._draw.choice(points)
        call = 1 if name == "write_result" else call
        deed = kill_at(owner, name, after=self._draw.random() < 0.5, call=call)
        with self._started(self._job(deed=deed)) as job:
            pass
        return self._ended(job, {_KILLED}, {_LOST, 0})

    # The end.

    def finish(self) -> None:
        """Start the run once more; it ends as the undisturbed one has ended."""
        with self._started(self._job()) as job:
            pass
        assert not any(job.exit_codes[-1]), f"the exit codes are {job.exit_codes[-1]}"
        assert is_finished(str(self.folder))
        found = json.loads((self.folder / "result.json").read_text())
        for name in _EQUAL:
            assert found.get(name) == self._wanted.get(name), f"{name}: {found.get(name)}, not {self._wanted.get(name)}"
        for name in (checkpoints.VARIABLES_FILE, manifest.MANIFEST_FILE):
            paths = [folder / found["best_checkpoint"] / name for folder in (self.folder, self._undisturbed)]
            assert paths[0].read_bytes() == paths[1].read_bytes(), f"{name} of the best checkpoint differs"
        assert not [path for path in self.folder.iterdir() if path.name.endswith(".partial")]


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        for size in (2**20, 4096):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))


ALONE: dict[str, Callable[[DisturbedRun], str]] = {
    "SIGKILL of the chief": DisturbedRun.kill_chief,
    "SIGTERM of a machine or all": DisturbedRun.preempt,
    "killed at the start": DisturbedRun.die_at_start,
    "killed before a commit": DisturbedRun.die_before_commit,
    "killed after a commit": DisturbedRun.die_after_commit,
    "full disk, later room": DisturbedRun.fill_disk,
    "newest checkpoint damaged": DisturbedRun.damage_newest,
    "best checkpoint damaged": DisturbedRun.damage_best,
    "other devices": DisturbedRun.use_other_devices,
}
"""Faults after which the run is not finished."""
TOGETHER = {
    "SIGKILL of the other worker": DisturbedRun.kill_worker,
    "worker killed, chief frozen at the restart": DisturbedRun.freeze_at_restart,
}
"""More of them, for two workers."""
LAST = {
    "frozen, taken over by another job": DisturbedRun.freeze,
    "second job beside a live one": DisturbedRun.second_trainer,
}
"""Faults during which the run is finished."""
