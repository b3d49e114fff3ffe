"""State shared by all serving containers of a server or a run: its processes, and how containers run."""

from dataclasses import dataclass, field
from pathlib import Path

from localvertex.containers.choice import Choice
from localvertex.credentials.isolation import IsolatedCredentials
from localvertex.processes.processes import Processes
from localvertex.values.buckets import Buckets


@dataclass(frozen=True, kw_only=True)
class Machine:
    """This machine, as an owner of serving containers uses it; the owner stops the processes."""

    work_dir: Path
    """Absolute; it has the registry and the endpoints."""
    processes: Processes
    credentials: IsolatedCredentials
    choice: Choice
    buckets: Buckets = field(default_factory=Buckets)
