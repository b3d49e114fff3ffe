"""What is said about a custom job from outside: where and how it runs, how far it is, how it ended."""

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from localvertex.custom_jobs.faults.faults import Fault
from localvertex.custom_jobs.restart_rules import RestartRule
from localvertex.errors import TaskFailed


class JobState(StrEnum):
    """States as the API's JobState names them."""

    PENDING = "JOB_STATE_PENDING"
    RUNNING = "JOB_STATE_RUNNING"
    SUCCEEDED = "JOB_STATE_SUCCEEDED"
    FAILED = "JOB_STATE_FAILED"
    CANCELLING = "JOB_STATE_CANCELLING"
    CANCELLED = "JOB_STATE_CANCELLED"


@dataclass(frozen=True, kw_only=True)
class Options:
    """How a job is done; none of it is part of the job."""

    restart_rule: RestartRule = RestartRule.SERVICE
    faults: tuple[Fault, ...] = ()
    random_faults_seed: int | None = None
    """Adds random faults, the same for the same seed and replicas."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a job runs."""

    folder: Path
    """Absolute; working directory and logs of the replicas, one job alone."""
    private_dir: Path
    """Environments that later jobs use again."""
    project: str = "local-project"
    buckets: Path | None = None
    """A folder with a folder for each bucket; None where gs:// means the cloud."""

    def localised(self, uri: str) -> str:
        """The URI, or the path of a bucket's object where buckets are folders."""
        if self.buckets is None or not uri.startswith("gs://"):
            return uri
        path = (self.buckets / uri.removeprefix("gs://")).resolve()
        if not path.is_relative_to(self.buckets.resolve()):
            raise TaskFailed(f"{uri} leads out of its bucket", is_retryable=False)
        return str(path)


@dataclass(frozen=True, kw_only=True)
class ReplicaStatus:
    """One replica at one moment."""

    name: str
    is_running: bool
    num_starts: int
    exit_code: int | None = None
    """Of its last process that has ended."""
    step: int = 0
    """Last step it has trained by its events, 0 when it writes none."""
    num_steps: int = 0
    """Of the whole run."""


@dataclass(frozen=True, kw_only=True)
class Status:
    """A job at one moment."""

    state: JobState = JobState.PENDING
    replicas: tuple[ReplicaStatus, ...] = ()
    num_restarts: int = 0
    """Starts after the first, of single replicas or of the whole job."""
    num_preemptions: int = 0
    goodput: dict[str, Any] = field(default_factory=dict)
    """What the time went into; empty until the job has ended."""

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a job ended."""

    status: Status
    error: str = ""
    exit_code: int | None = None
    """Of the replica that decided it."""
    is_permanent: bool = False
    """Whether running the same job again would end the same way."""

    @property
    def state(self) -> JobState:
        """SUCCEEDED, FAILED or CANCELLED."""
        return self.status.state
