"""One run of a job in a folder of its own, undisturbed or with one fault, by the restart rules of Vertex AI."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from localvertex._base import linux
from localvertex.errors import TaskFailed
from localvertex.jobs import CustomJob, JobState, Outcome, Pool, Workspace, images, run_job
from localvertex.jobs.faults.faults import ALL
from localvertex.jobs.job import PRIMARY
from localvertex.jobs.status import PERMANENT
from localvertex.processes import logs
from localvertex.processes.processes import Processes
from localvertex.prove.disturbance import ENDED, FILLER, Disturbance
from localvertex.prove.faults import KILLS, FaultKind, Planned, injection
from localvertex.prove.watch import State, write_state
from localvertex.runner.options import Options
from localvertex.store import record

_GRACE_SECONDS = Options().grace_seconds
_NOT_IN_CONTAINERS = {
    FaultKind.DISK_FULL: "a container does not see a small disk of this machine",
    FaultKind.FILE_EVENTS: "the calls of a container cannot be counted",
}
_DISK = 'mount -t tmpfs -o size=64m none "$0" && mkdir "$0/checkpoints" && echo ready && exec cat'


@dataclass(frozen=True, kw_only=True)
class ProofRun:
    """A run that has ended."""

    base: Path
    """The folder of its outputs."""
    logs: list[Path]
    outcomes: list[Outcome]
    """Outcome of the job, and of a second job for faults that need two."""
    disturbance: Disturbance
    processes_left: int = 0
    """How many processes the job's main ones have left running at their ends."""

    @property
    def has_finished(self) -> bool:
        """Whether the last job succeeded."""
        return self.outcomes[-1].state is JobState.SUCCEEDED

    @property
    def exit_codes(self) -> list[int]:
        """The exit codes of the primary replica's processes, in their order."""
        spans = [span for each in self.outcomes for span in each.status.replicas[0].spans]
        return [span.exit_code for span in spans if span.exit_code is not None]

    @property
    def problem(self) -> str:
        """Why the fault did not happen; empty if it has, or if none was planned."""
        planned, replicas = self.disturbance.planned, self.outcomes[0].status.replicas
        if planned is None:
            return ""
        killed = [each for each in replicas if planned.target in (ALL, each.name)]
        is_kill = planned.kind in KILLS and not any(span.exit_code for each in killed for span in each.spans)
        return ENDED if is_kill else self.disturbance.problem

    @property
    def is_refused(self) -> bool:
        """Whether an exit code that is not restarted has ended the last job."""
        return not self.has_finished and any(each.phase == PERMANENT for each in self.outcomes[-1].status.events)


def run(
    job: CustomJob,
    root: Path,
    options: Options,
    planned: Planned | None = None,
    pace: Disturbance | None = None,
    *,
    checkpoints: State | None = None,
    until: Callable[[Path], bool] = lambda _: False,
) -> ProofRun:
    """Run a job to its end.

    Args:
        job: The job.
        root: A new folder for all its files.
        options: How containers run, and where buckets are.
        planned: The fault; None: undisturbed.
        pace: Pace of an undisturbed run; None: this run is undisturbed.
        checkpoints: The files that the job finds in its checkpoint folder; None: none.
        until: Ends an undisturbed job, by the log of its primary replica.

    Raises:
        TaskFailed: The job cannot be started, or the fault is impossible for it or on this machine.
    """
    base, folder, kind = root / "output", root / "folder", planned and planned.kind
    (base / "checkpoints").mkdir(parents=True)
    folder.mkdir()
    write_state(base / "checkpoints", checkpoints or {})
    job = _in_folder(job, base)
    if pace is not None:
        # A run that takes ten times as long hangs.
        seconds = min(job.scheduling.timeout_seconds, 10 * pace.seconds + 120)
        job = replace(job, scheduling=replace(job.scheduling, timeout_seconds=seconds))
    if kind in (FaultKind.ONE_REPLICA, FaultKind.OTHER_WORKERS) and not any(pool.number == 1 for pool in job.pools):
        raise TaskFailed("the job has no pool of workers")
    is_contained = any(images.is_container_command(pool, options.container_choice) for pool in job.pools)
    if is_contained and kind in _NOT_IN_CONTAINERS:
        raise TaskFailed(_NOT_IN_CONTAINERS[kind])
    following, outside = None, base
    with ExitStack() as stack:
        if kind is FaultKind.OTHER_WORKERS:
            # One worker less, or a second one.
            following = _with_pools(
                job,
                lambda pool: replace(pool, num_replicas=pool.num_replicas - 1 or 2) if pool.number == 1 else pool,
            )
        elif kind is FaultKind.DISK_FULL:
            pid = stack.enter_context(_small_disk(base))
            outside = Path(f"{linux.root_of(pid)}{base}")
            # Its commands see the disk, from whose root nsenter begins.
            enter = ["nsenter", f"--target={pid}", "--user", "--mount", "--preserve-credentials", "--"]
            words = (*enter, "sh", "-c", 'cd "$0" && exec "$@"', str(folder))
            job = following = _with_pools(
                job, lambda pool: replace(pool, entry_point=(*words, *pool.entry_point), has_local_command=True)
            )
        elif planned and kind is FaultKind.FILE_EVENTS:
            env = injection(root, planned)
            job = _with_pools(job, lambda pool: replace(pool, env=pool.env | env))
            # The program kills itself.
            planned = None
        disturbance = Disturbance(
            planned=planned,
            pace=pace if planned else None,
            checkpoints=outside / "checkpoints",
            log=folder / f"{PRIMARY}.log",
            has_seen_enough=lambda: until(folder / f"{PRIMARY}.log"),
        )
        try:
            ended = [_run(job, folder, options, disturbance)]
            (outside / FILLER).unlink(missing_ok=True)
            if following and ended[0][0].state is not JobState.SUCCEEDED and not disturbance.problem:
                for path in folder.glob("workerpool*.log"):
                    logs.add(path, "--- start 2 ---")
                disturbance.cancel.clear()
                ended.append(_run(following, folder, options, disturbance))
        finally:
            disturbance.close()
        if outside != base:
            shutil.copytree(outside, base, dirs_exist_ok=True, symlinks=True)
    outcomes, left = zip(*ended, strict=True)
    return ProofRun(
        base=base,
        logs=sorted(folder.glob("workerpool*.log")),
        outcomes=[*outcomes],
        disturbance=disturbance,
        processes_left=sum(left),
    )


def _with_pools(job: CustomJob, change: Callable[[Pool], Pool]) -> CustomJob:
    return replace(job, pools=tuple(map(change, job.pools)))


def _in_folder(job: CustomJob, base: Path) -> CustomJob:
    """Return the job with its outputs in a folder, even where its words name theirs, and its byte code beside it."""
    own = job.base_output_directory.rstrip("/")

    def replaced(text: str) -> str:
        text = text.replace("{checkpoints}", f"{base}/checkpoints")
        return text.replace(own, str(base)) if own else text

    def changed(pool: Pool) -> Pool:
        entry, arguments = (tuple(map(replaced, words)) for words in (pool.entry_point, pool.arguments))
        env = {name: replaced(value) for name, value in pool.env.items()}
        env |= {"PYTHONPYCACHEPREFIX": str(base.parents[1] / "pycache")}
        return replace(pool, entry_point=entry, arguments=arguments, env=env)

    return replace(_with_pools(job, changed), base_output_directory=str(base))


def _run(job: CustomJob, folder: Path, options: Options, disturbance: Disturbance) -> tuple[Outcome, int]:
    """Run one job; return how it ended, and how many processes it left."""
    private, root = options.work_dir.absolute() / record.PRIVATE, options.gcs_root
    processes = Processes(grace_seconds=_GRACE_SECONDS)
    try:
        outcome = run_job(
            job,
            workspace=Workspace(folder=folder, private_dir=private, buckets=root and root.absolute()),
            processes=processes,
            containers=options.container_choice,
            cancel=disturbance.cancel,
            disturb=disturbance,
        )
    finally:
        processes.stop(at_once=True)
    return outcome, processes.num_left


@contextmanager
def _small_disk(base: Path) -> Iterator[int]:
    """Mount a disk of 64 MiB at a folder in a namespace, and return the process that holds it.

    Raises:
        TaskFailed: This user may not mount.
    """
    if not linux.is_used() or not all(map(shutil.which, ("unshare", "nsenter"))):
        raise TaskFailed("a small disk needs unshare and nsenter of Linux")
    words = ["unshare", "-rm", "sh", "-c", _DISK, str(base)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as holder:
        try:
            if holder.stdout is None or not holder.stdout.readline():
                raise TaskFailed("this user may not mount a small disk")
            yield holder.pid
        finally:
            holder.kill()
