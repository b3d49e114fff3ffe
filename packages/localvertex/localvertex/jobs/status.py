"""A custom job as its caller sees it: where and how it runs, its progress, how it ended."""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from localvertex._base.json_object import JsonObject
from localvertex._base.userinput import atomic_write
from localvertex._base.userinput.errors import UserError
from localvertex._base.userinput.reading import read_bytes
from localvertex.containers.memory import Memory
from localvertex.jobs.goodput.event_files import EventLog
from localvertex.jobs.goodput.progress import Progress
from localvertex.jobs.goodput.timeline import Span
from localvertex.values.buckets import Buckets

_FILE = "status.json"

LOG = "log.txt"
"""The job's own log, in its folder; a pipeline's step has the same file."""


class JobState(StrEnum):
    """States as the API's JobState names them."""

    QUEUED = "JOB_STATE_QUEUED"
    PENDING = "JOB_STATE_PENDING"
    RUNNING = "JOB_STATE_RUNNING"
    SUCCEEDED = "JOB_STATE_SUCCEEDED"
    FAILED = "JOB_STATE_FAILED"
    CANCELLING = "JOB_STATE_CANCELLING"
    CANCELLED = "JOB_STATE_CANCELLED"


class EventKind(StrEnum):
    """A kind of event of a job."""

    FAULT = "fault"
    EXIT = "exit"
    DECISION = "decision"
    """The consequence of a failure: a restart, or the end of the job."""
    STALL = "stall"
    STATE = "state"
    NOTE = "note"


FINAL_STATES = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """The folders and the project in which a job runs."""

    folder: Path
    """Absolute path of the replicas' working directory and logs, used by this job only."""
    private_dir: Path
    """Environments that later jobs reuse."""
    project: str = "local-project"
    readable: tuple[Path, ...] = ()
    """Files and folders that container commands may read."""
    buckets: Path | None = None
    """A folder with one folder per bucket; None where gs:// means Cloud Storage itself."""
    keeps_addresses: bool = False
    """Whether replicas get gs:// as it is."""

    def to_local_path(self, uri: str) -> str:
        """Return the URI, or the path of a bucket's object where buckets are folders.

        Raises:
            TaskFailed: The URI points outside its bucket.
        """
        return Buckets(root=self.buckets).local_path(uri)


@dataclass(frozen=True, kw_only=True)
class ReplicaStatus(Progress):
    """One replica at one moment, with the progress of its training."""

    name: str
    is_running: bool
    num_starts: int
    exit_code: int | None = None
    """The exit code of its last process that has ended."""
    memory: Memory | None = None
    """Memory of its largest process that has ended."""
    job_id: str = ""
    """The id of the job that fault requests name; each attempt at a step is another job."""
    spans: tuple[Span, ...] = ()
    """The lifetime of each of its processes."""
    event_log: EventLog | None = None
    """The position at which the events of this job begin; None if they cannot be read."""


@dataclass(frozen=True, kw_only=True)
class JobEvent:
    """An event of a job: its sentence is for users, and programs read the other fields."""

    kind: EventKind
    text: str
    replica: str = ""
    """A name, or `all`; empty for an event of the job itself."""
    action: str = ""
    """An `Action` of faults, or a `Verdict`."""
    phase: str = ""
    """The new state of the job; `missed` of a fault without a process; `permanent` of an exit code without restarts."""
    time: float = field(default_factory=time.time, init=False)
    """Seconds since the epoch."""


MISSED, PERMANENT = "missed", "permanent"


@dataclass(frozen=True, kw_only=True)
class JobStatus:
    """A job at one moment."""

    state: JobState = JobState.PENDING
    replicas: tuple[ReplicaStatus, ...] = ()
    num_restarts: int = 0
    """Starts after the first, of single replicas or of the whole job."""
    num_preemptions: int = 0
    events: tuple[JobEvent, ...] = ()
    failed_replica: str = ""
    """The replica whose exit code has ended the job; its log is the one to read."""
    stalled: str = ""
    """Why the job makes no progress, as a sentence; empty while it does."""
    goodput: JsonObject = field(default_factory=dict)
    """How the time was spent; empty until the job has ended."""

    def as_json(self) -> JsonObject:
        """Return plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a job ended."""

    status: JobStatus
    error: str = ""
    exit_code: int | None = None
    """The exit code of the replica that decided the outcome."""
    is_permanent: bool = False
    """Whether running the same job again would end the same way."""
    is_shortage: bool = False
    """Whether it has found no machines."""

    @property
    def state(self) -> JobState:
        """SUCCEEDED, FAILED or CANCELLED."""
        return self.status.state


class StatusFile:
    """The status of a running job as a file of its folder, for jobs that no record of a run contains.

    It is written whenever more than the training changes, which the event log has anyway.
    """

    def __init__(self, folder: Path, without_secrets: Callable[[Any], Any]) -> None:
        self._path, self._without_secrets = folder / _FILE, without_secrets
        self._written: object = None

    def write(self, status: JobStatus) -> None:
        """Note the present status; a full disk does not end the job."""
        processes = [(each.is_running, each.num_starts, each.exit_code) for each in status.replicas]
        key = status.state, processes, len(status.events), status.stalled, bool(status.goodput)
        if key != self._written:
            with suppress(OSError):
                atomic_write.write_text(self._path, json.dumps(self._without_secrets(status.as_json())))
                self._written = key

    @staticmethod
    def read(folder: Path) -> JsonObject:
        """Return the last status of a job; empty when there is none that can be read."""
        try:
            content = json.loads(read_bytes(folder / _FILE))
        except (UserError, ValueError, RecursionError):
            return {}
        return content if isinstance(content, dict) else {}
