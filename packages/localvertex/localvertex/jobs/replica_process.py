"""A replica while its job runs: its host name, port and log stay the same, its processes are replaced."""

import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from localvertex._base.lines import WriteLine
from localvertex.containers.memory import Memory, largest, of
from localvertex.jobs.goodput.event_files import EventFiles
from localvertex.jobs.goodput.timeline import Span
from localvertex.jobs.job import Replica
from localvertex.jobs.status import ReplicaStatus
from localvertex.machines import load_catalogue
from localvertex.processes import logs
from localvertex.processes.forking import ForkServer
from localvertex.processes.network.metadata_server import MetadataServer
from localvertex.processes.processes import Process, Processes


@dataclass(frozen=True, kw_only=True)
class Exit:
    """The end of a process of a replica."""

    replica: "ReplicaProcess"
    number: int
    """The number of the process, counted from 1 per replica."""
    code: int


@dataclass(kw_only=True, eq=False)
class ReplicaProcess:
    """A replica and its current process. Only the job's own thread changes it."""

    replica: Replica
    command: list[str]
    env: dict[str, str]
    folder: Path
    processes: Processes
    metadata: MetadataServer
    warn: WriteLine
    address: str
    """Host and port where the other replicas expect it."""
    clean_up: list[str] = field(default_factory=list)
    """Command that ends what the end of its process leaves running."""
    has_mask: bool = True
    supervisors: ForkServer | None = None
    """Forks the supervisors of its processes in a tenth of the time."""
    spans: list[Span] = field(default_factory=list)
    is_running: bool = False
    memory: Memory | None = None
    """Memory of its largest process that has ended."""
    _process: Process | None = None

    @property
    def name(self) -> str:
        """The replica's host name."""
        return self.replica.name

    @property
    def log(self) -> Path:
        """The log file to which all its processes append."""
        return self.folder / f"{self.name}.log"

    @property
    def exit_code(self) -> int | None:
        """The exit code of its last process; None while that runs."""
        return self.spans[-1].exit_code if self.spans else None

    @property
    def num_starts(self) -> int:
        """How many processes it has had."""
        return len(self.spans)

    @property
    def is_done(self) -> bool:
        """Whether its last process exited with 0."""
        return self.exit_code == 0

    def status(self, job_id: str, events: EventFiles) -> ReplicaStatus:
        """Return its public status, given the events of its job."""
        ended = [span.exit_code for span in self.spans if span.exit_code is not None]
        return ReplicaStatus(
            name=self.name,
            is_running=self.is_running,
            num_starts=self.num_starts,
            exit_code=ended[-1] if ended else None,
            memory=self.memory,
            job_id=job_id,
            spans=tuple(replace(span) for span in self.spans),
            event_log=events.log(self.name),
            **asdict(events.progress(self.name)),
        )

    def start(self, on_exit: Callable[[Exit], None]) -> None:
        """Start a process; `on_exit` is called from another thread when it has ended.

        Raises:
            Cancelled: The run is being stopped.
            TaskFailed: The process cannot be started.
        """
        if self.spans:
            logs.add(self.log, f"--- start {self.num_starts + 1} ---")
        self.metadata.reset()
        process = self.processes.start(
            self.command,
            cwd=self.folder,
            env=self.env,
            log=self.log,
            clean_up=self.clean_up,
            has_mask=self.has_mask,
            supervisors=self.supervisors,
        )
        self.spans.append(Span(start=time.time()))
        self._process, self.is_running = process, True
        number = self.num_starts

        def wait() -> None:
            code = self.processes.wait(process)
            machine = load_catalogue().machines.get(self.replica.pool.machine_type)
            self.memory = largest([self.memory, of(self.command, process.peak_bytes, machine)])
            if self.memory and self.memory["severity"]:
                self.warn(f"{self.name}: {self.memory['text']}")
            for line in process.discarded:
                self.warn(line)
            on_exit(Exit(replica=self, number=number, code=code))

        # A daemon thread, because the supervisor ends the process, and with it this wait.
        threading.Thread(target=wait, name=self.name, daemon=True).start()

    def is_frozen(self) -> bool:
        """Return whether its process is stopped; False if unknown, as for a container, which the engine runs."""
        return self._process is not None and self.is_running and not self.clean_up and self._process.is_frozen()

    def note_end(self, code: int) -> None:
        """Note that its process has ended."""
        self.is_running = False
        self.spans[-1].end, self.spans[-1].exit_code = time.time(), code

    def signal(self, number: int) -> None:
        """Send a signal to the process and everything it started; do nothing when it has ended."""
        if self._process is not None and self.is_running:
            self._process.signal(number)

    def stop(self) -> None:
        """Send SIGTERM, then SIGKILL after the run's grace time."""
        if self._process is not None:
            self._process.stop()
