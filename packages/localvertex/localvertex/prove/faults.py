"""The faults that a training has to survive, and when each happens: a plan that its seed decides."""

import random
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from localvertex._base import linux
from localvertex.errors import TaskFailed
from localvertex.jobs import CustomJob
from localvertex.jobs.faults.faults import ALL
from localvertex.prove.watch import LOGS


class FaultKind(StrEnum):
    """A fault, by the name that `--fault` takes (docs/prove.md)."""

    EARLY = "killed-early"
    MIDDLE = "killed-in-the-middle"
    END = "killed-at-the-end"
    TWICE = "killed-twice"
    FIRST_WRITE = "killed-at-first-write"
    SIGTERM = "sigterm"
    NOTICE = "notice"
    FROZEN = "frozen"
    ONE_REPLICA = "one-replica"
    TORN = "torn-checkpoint"
    BIT_FLIPPED = "bit-flipped"
    DISK_FULL = "disk-full"
    OTHER_WORKERS = "other-workers"
    FILE_EVENTS = "at-every-file-event"


DEFAULT = [each for each in FaultKind if each is not FaultKind.FILE_EVENTS]
"""All but the one that takes a run for each call of a save."""
KILLS = {*FaultKind} - {FaultKind.SIGTERM, FaultKind.NOTICE, FaultKind.FROZEN, FaultKind.DISK_FULL}
"""Faults after which a replica has not ended by itself."""

RESIDUES = {FaultKind.EARLY: 1, FaultKind.MIDDLE: 3, FaultKind.END: 0, FaultKind.TWICE: 2}
"""The number of saves before a kill, modulo 4: what only every second to fourth save has is lost by one of them."""

_MIDDLE = (0.4, 0.65)
_FRACTIONS = {
    FaultKind.EARLY: (0.08, 0.25),
    FaultKind.FIRST_WRITE: (0.0, 0.0),
    FaultKind.TWICE: (0.25, 0.35),
    FaultKind.TORN: (0.3, 0.5),
    FaultKind.DISK_FULL: (0.2, 0.5),
    FaultKind.END: (0.8, 0.93),
}

_MAX_FILE_EVENTS = 40


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A fault of the plan."""

    kind: FaultKind
    fraction: float
    """Share of the training at which the fault happens."""
    target: str
    """The replica, or `all`."""
    draw: int
    """Chooses the rest, such as the bit, or which of several equal calls."""
    event: str = ""
    """The call and the path of a file event; empty: they are counted."""


def injection(root: Path, planned: Planned) -> dict[str, str]:
    """Return the variables of a program that is killed at a file event, or that counts them.

    Raises:
        TaskFailed: This machine has no C compiler, or uses another C library.
    """
    library, compiler = root.with_name("injection.so"), shutil.which("cc")
    if not (compiler and linux.is_used()):
        raise TaskFailed("found no C compiler (cc) on Linux, for a library that counts the program's calls")
    if not library.exists():
        words = [compiler, "-shared", "-fPIC", "-O1", "-x", "c", "-", "-o", str(library), "-ldl"]
        done = subprocess.run(words, input=linux.INJECTION, capture_output=True, text=True, check=False)
        if done.returncode:
            raise TaskFailed(f"cc cannot compile a library that counts the program's calls: {done.stderr[:200]}")
    return {
        "LD_PRELOAD": str(library),
        "PROVE_FOLDER": f"{root}/output/checkpoints",
        "PROVE_RECORD": str(root.with_name("events") if not planned.event else root / "events"),
        "PROVE_TARGET": planned.event,
        "PROVE_NUMBER": str(planned.draw),
    }


def file_events(folder: Path) -> list[tuple[str, int]]:
    """Return the kinds of calls and paths of the counted saves, and which of each is in the middle of the run."""
    record = folder / "events"
    lines = record.read_text(errors="replace").splitlines() if record.exists() else []
    counts = Counter(each for each in lines if not LOGS.search(each.partition(" ")[2]))
    return [(event, (count + 1) // 2) for event, count in counts.items()][:_MAX_FILE_EVENTS]


def plan(seed: int, job: CustomJob) -> list[Planned]:
    """Return all faults, in their order."""
    others = [each.name for each in job.replicas if not each.is_primary]
    planned = []
    for kind in FaultKind:
        draw = random.Random(f"{seed}-{kind}")  # noqa: S311 - a plan that can be repeated
        fraction = draw.uniform(*_FRACTIONS.get(kind, _MIDDLE))
        target = draw.choice(others) if kind is FaultKind.ONE_REPLICA and others else ALL
        planned.append(Planned(kind=kind, fraction=fraction, target=target, draw=draw.randrange(2**30)))
    return planned
