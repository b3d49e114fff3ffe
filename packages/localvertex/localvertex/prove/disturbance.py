"""Carries out one planned fault while a job runs.

A thread follows the log and the checkpoint folder and strikes at the planned moment, within milliseconds. What the
job's own loop has to do, such as a notice, it does in its next round, with the processes stopped until then.
"""

import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from localvertex.jobs import Fault
from localvertex.jobs.faults.faults import ALL, Action
from localvertex.jobs.replica_process import ReplicaProcess
from localvertex.prove.faults import KILLS, RESIDUES, FaultKind, Planned
from localvertex.prove.watch import FolderWatch, State, flip_bit, read_state, without_numbers, write_state

ENDED = "the training ended before the fault"

FILLER = ".full"
"""The file that fills a disk."""

_POLL_SECONDS = 0.002
_SETTLE_SECONDS = 0.05
"""Time from the end of a write to the next operation, such as a rename; and from SIGSTOP until a container stops."""
_STOP_SECONDS = 5.0
"""Time from SIGSTOP until a process has stopped, on a busy machine."""
_FAST_SECONDS = 2.0
_QUANTUM_SECONDS = 0.0005
"""Time for which a fast training runs between two checks."""
_FROZEN_SECONDS = 2.0
_MIN_LINES, _MIN_SAVES = 8, 3
"""Lines of a log and saves that show the progress of a training; with fewer, the time shows it."""
_SLACK = 0.2
"""Share of the training for which a fault waits for its moment between two saves."""
_AGAIN = 0.5
"""Share of the training after which it is killed again, whether or not it has saved since."""
_LOOP_FAULTS = {
    FaultKind.SIGTERM: Fault(action=Action.SIGTERM, target=ALL, at_seconds=0.0, grace_seconds=10.0),
    FaultKind.NOTICE: Fault(action=Action.MAINTENANCE, target=ALL, at_seconds=0.0, grace_seconds=2.0),
}


@dataclass(frozen=True, kw_only=True)
class Save:
    """Files that were written in the checkpoint folder, without a line of the log between them as far as is known."""

    num_lines: int
    """Lines of the log that were there before."""
    names: frozenset[str]
    """The files."""
    start: float
    """When its first change was seen."""
    seconds: float = 0.0
    end_ns: int = 0
    """When its last file was seen, by the clock of files."""


@dataclass(frozen=True, kw_only=True)
class Kill:
    """A kill of the primary replica."""

    process: int
    """The number of the process, counted from 0."""
    num_saves: int
    """How many saves had begun."""
    num_whole: int
    """Number of complete saves: nothing had changed for as long as the longest save took, or another save had begun."""


@dataclass(kw_only=True)
class Disturbance:
    """One fault in one job; `close` it when the job has ended.

    Attributes:
        planned: The fault; None: lines and saves are only counted.
        pace: That of an undisturbed run, which says how fast it is; None: undisturbed.
        checkpoints: The checkpoint folder, which exists.
        log: The log of the primary replica.
        cancel: Cancels the job.
        has_seen_enough: When to cancel a job without a fault.
        problem: Why the fault did not happen; empty if it has.
        damaged: The file that was hit.
        is_in_place: Whether a checkpoint is written under its final name; None: not seen.
        num_lines: Number of lines of the log.
        num_saves: Files that were written in the checkpoint folder.
        saves: What was written together.
        kills: What had been saved at each kill.
        seconds: The duration of the job.
        is_fast: Whether all lines and saves came within two seconds, so that a fault would miss its moment.
    """

    planned: Planned | None
    pace: "Disturbance | None"
    checkpoints: Path
    log: Path
    cancel: threading.Event = field(default_factory=threading.Event)
    has_seen_enough: Callable[[], bool] = lambda: False
    problem: str = ENDED
    damaged: str = ""
    is_in_place: bool | None = None
    num_lines: int = 0
    num_saves: int = 0
    saves: list[Save] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    seconds: float = 0.0
    is_fast: bool = False
    _replicas: Sequence[ReplicaProcess] = ()
    _due: list[Fault] = field(default_factory=list)
    _closed: threading.Event = field(default_factory=threading.Event)
    _seen: list[float] = field(default_factory=list)
    _began: float = 0.0
    """When the save in progress was first seen."""

    def __post_init__(self) -> None:
        """Begin to watch."""
        self._watch, self._start = FolderWatch(self.checkpoints), time.monotonic()
        self._offset, self._is_between = 0, True
        # Before the first write, there are no files that a kill could leave.
        self._before: State | None = {} if self.planned and self.planned.kind is FaultKind.FIRST_WRITE else None
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __call__(self, replicas: Sequence[ReplicaProcess], seconds: float) -> list[Fault]:
        """Begin to follow the job, and return the faults that its loop carries out now."""
        if not self._replicas:
            self._replicas = replicas
            self._thread.start()
        due, self._due = self._due, []
        if not due and self.planned and self.planned.kind in _LOOP_FAULTS and not self.problem:
            self._signal(signal.SIGCONT)
        return due

    def close(self) -> None:
        """Stop following."""
        self._closed.set()
        if self._replicas:
            self._thread.join()
        self._count()
        if self.is_in_place is None:
            self.is_in_place = self._watch.overwrites
        self.seconds = time.monotonic() - self._start
        self.is_fast = bool(self._seen) and self._seen[-1] - self._seen[0] < _FAST_SECONDS
        self._watch.close()

    @property
    def _targets(self) -> list[ReplicaProcess]:
        return [each for each in self._replicas if self.planned and self.planned.target in (ALL, each.name)]

    def _follow(self) -> None:
        is_fast = self.pace is not None and self.pace.is_fast
        while not self._closed.wait(_QUANTUM_SECONDS if is_fast else _POLL_SECONDS):
            if is_fast:
                self._stop()
            else:
                self._count()
            if self.planned and self.pace and self._is_due(self.planned, self.pace):
                try:
                    self.problem = self._strike(self.planned)
                except OSError as error:
                    self.problem = f"the checkpoint folder cannot be changed: {error.strerror}"
                if self.planned.kind is FaultKind.TWICE and len(self.kills) == 1:
                    self.problem = ENDED
                elif not self.problem:
                    return
                self._signal(signal.SIGCONT)
            elif is_fast:
                self._signal(signal.SIGCONT)
            elif self.has_seen_enough():
                self.cancel.set()
                return

    def _count(self) -> None:
        lines = b""
        with suppress(OSError), self.log.open("rb") as file:
            file.seek(self._offset)
            lines = file.read()
        changed = self._watch.seconds
        saves, now = self._watch.poll(), time.monotonic()
        self._began = self._began or (now if self._watch.seconds > changed else 0.0)
        if saves:
            if self._is_between or b"\n" in lines or not self.saves:
                # Lines that came together with it may have come after it.
                self.saves.append(Save(num_lines=self.num_lines, names=frozenset(), start=self._began))
            save, self._began = self.saves[-1], 0.0
            names = save.names.union(self._watch.written[-saves:])
            self.saves[-1] = replace(save, names=names, seconds=now - save.start, end_ns=time.time_ns())
        self._offset += len(lines)
        self.num_lines += lines.count(b"\n")
        self.num_saves += saves
        self._seen += [now] if lines or saves else []
        self._is_between = not saves and (self._is_between or b"\n" in lines)

    def _is_due(self, planned: Planned, pace: "Disturbance") -> bool:
        if self._before is not None:
            return bool(self._watch.written)
        done = (time.monotonic() - self._start) / pace.seconds
        if pace.num_lines >= _MIN_LINES:
            done = self.num_lines / pace.num_lines
        elif pace.num_saves >= _MIN_SAVES:
            done = self.num_saves / pace.num_saves
        if done < planned.fraction or planned.kind is FaultKind.DISK_FULL:
            return done >= planned.fraction
        has_saved = self.num_saves > 0 and (self._is_between or pace.num_lines < _MIN_LINES)
        if self.kills:
            has_resumed = has_saved and len(self.saves) > self.kills[0].num_saves + 1
            return has_resumed or done > planned.fraction + _AGAIN
        if (residue := RESIDUES.get(planned.kind)) is not None:
            has_saved = has_saved and len(self.saves) % 4 == residue
        return has_saved or pace.num_saves == 0 or done > planned.fraction + _SLACK

    def _signal(self, number: int) -> None:
        for each in self._targets:
            each.signal(number)

    def _stop(self) -> None:
        self._signal(signal.SIGSTOP)
        start = time.monotonic()
        while any(
            each.is_running
            and not each.is_frozen()
            and time.monotonic() < start + (_SETTLE_SECONDS if each.clean_up else _STOP_SECONDS)
            for each in self._targets
        ):
            time.sleep(_QUANTUM_SECONDS)
        self._count()

    def _strike(self, planned: Planned) -> str:
        """Do it; return why it cannot be done, empty if it is."""
        kind = planned.kind
        is_done = self.pace and not self.kills and _MIN_LINES <= self.pace.num_lines <= self.num_lines
        if is_done or not any(each.is_running for each in self._targets):
            return ENDED
        if kind in _LOOP_FAULTS:
            self._stop()
            self._due = [_LOOP_FAULTS[kind]]
            return ""
        if kind is FaultKind.FROZEN:
            self._signal(signal.SIGSTOP)
            self._closed.wait(_FROZEN_SECONDS)
        elif kind is FaultKind.DISK_FULL:
            with (self.checkpoints.parent / FILLER).open("wb", buffering=0) as file, suppress(OSError):
                while True:
                    file.write(bytes(4096))
        elif kind in (FaultKind.FIRST_WRITE, FaultKind.TORN):
            if problem := self._tear():
                return problem
        elif kind is FaultKind.BIT_FLIPPED:
            self._stop()
            state = read_state(self.checkpoints)
            self.damaged = flip_bit(state, planned.draw)
            if not self.damaged:
                return "the training has no checkpoint file"
            write_state(self.checkpoints, state)
        elif kind is FaultKind.OTHER_WORKERS:
            self.cancel.set()
        if kind in RESIDUES:
            num_saves, seconds = len(self.saves), time.monotonic() - self._watch.seconds
            is_quiet = self._is_between and seconds >= max((each.seconds for each in self.saves), default=0.0)
            is_again = len({frozenset(map(without_numbers, each.names)) for each in self.saves[-2:]}) == 1
            num_whole = num_saves if is_quiet else (num_saves - 1) * is_again
            process = self._replicas[0].num_starts - 1
            self.kills.append(Kill(process=process, num_saves=num_saves, num_whole=num_whole))
        self._signal(signal.SIGKILL if kind in KILLS else signal.SIGCONT)
        return ""

    def _tear(self) -> str:
        """Make the files as a kill during a write leaves them; first note the earlier files, for a later kill."""
        if self._before is None:
            self._stop()
            self._before, problem = read_state(self.checkpoints), "the training saved no more"
        else:
            time.sleep(_SETTLE_SECONDS)
            self._stop()
            if found := self._watch.half_written(self._before, read_state(self.checkpoints)):
                state, self.damaged, self.is_in_place = found
                write_state(self.checkpoints, state)
                return ""
            problem = "no file of a checkpoint could be followed"
        self._watch.forget()
        return problem
