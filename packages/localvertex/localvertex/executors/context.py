"""State shared by all attempts of a run."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from localvertex._base.lines import WriteLine
from localvertex.containers.choice import Choice
from localvertex.containers.serving.machine import Machine
from localvertex.credentials.isolation import IsolatedCredentials
from localvertex.executors.api_access import ApiAccess
from localvertex.jobs import Fault, FaultLedger
from localvertex.processes.processes import Processes
from localvertex.store import record
from localvertex.values.buckets import Buckets
from localvertex.values.placeholders import Scope
from localvertex.values.repository import Repository


@dataclass(kw_only=True)
class Warnings:
    """Harmless differences from the service, each reported once. Safe to use from several threads."""

    listener: Callable[[str], None]
    texts: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, text: str) -> None:
        """Report a warning, unless this run has reported it before."""
        with self._lock:
            if text in self.texts:
                return
            self.texts.append(text)
        self.listener(text)


@dataclass(frozen=True, kw_only=True)
class Context:
    """A run as its attempts see it."""

    run_id: str
    pipeline_name: str
    work_dir: Path
    """Absolute; the pipeline root."""
    project: str
    region: str
    job: dict[str, str]
    """Values of the job-wide placeholders."""
    processes: Processes
    credentials: IsolatedCredentials
    """Credentials for the processes."""
    api: ApiAccess | None = None
    """The API for the steps."""
    warnings: Warnings
    report: WriteLine
    """Shows the user an event within a step."""
    use_cache: bool
    faults: tuple[Fault, ...] = ()
    fault_ledger: FaultLedger = field(default_factory=FaultLedger)
    output_directory: str = ""
    """gs:// prefix of the output artifacts; empty: the folders of the run."""
    buckets: Buckets = field(default_factory=Buckets)
    """The folders of the buckets."""
    containers: Choice = field(default_factory=Choice)
    """How container commands run."""
    pins: Mapping[str, str] = field(default_factory=dict)
    """Versions that are installed in place of pinned ones, e.g. `numpy==1.21.6` by `numpy==1.21.9`."""
    repository: Repository = field(default_factory=Repository)
    """Names the packages of missing modules."""
    images: str = "{}"
    """Variable of steps with the digests of the code in place of images."""
    given_paths: tuple[Path, ...] = ()
    """Files and folders that the user has given as inputs; container commands may read them."""

    @property
    def run_dir(self) -> Path:
        """Return the folder of this run."""
        return self.work_dir / self.run_id

    @property
    def private_dir(self) -> Path:
        """Return the folder of caches and environments, shared by all runs of the work folder."""
        return self.work_dir / record.PRIVATE

    @property
    def machine(self) -> Machine:
        """Return this machine for serving containers."""
        return Machine(
            work_dir=self.work_dir,
            processes=self.processes,
            credentials=self.credentials,
            choice=self.containers,
            buckets=self.buckets,
        )

    @property
    def scope(self) -> Scope:
        """Return the placeholders that need no task."""
        return Scope(job=self.job)
