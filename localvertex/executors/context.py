"""What every task of a run shares."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from localvertex.custom_jobs import Options as CustomJobOptions
from localvertex.processes.forked_steps import ForkServers
from localvertex.processes.processes import Processes
from localvertex.state import record
from localvertex.values.placeholders import Scope


@dataclass(kw_only=True)
class Warnings:
    """Things said once: harmless differences from the service. Safe to use from several threads."""

    listener: Callable[[str], None]
    texts: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def say(self, text: str) -> None:
        """Says it, unless it was said before in this run."""
        with self._lock:
            if text in self.texts:
                return
            self.texts.append(text)
        self.listener(text)


@dataclass(frozen=True, kw_only=True)
class Context:
    """A run as its tasks see it."""

    run_id: str
    pipeline_name: str
    work_dir: Path
    """Absolute; the pipeline root."""
    project: str
    region: str
    job: dict[str, str]
    """Values of the job-wide placeholders."""
    processes: Processes
    fork_servers: ForkServers = field(default_factory=ForkServers)
    warnings: Warnings
    tell: Callable[[str], None]
    """Says to whoever watches that something happened within a step."""
    use_cache: bool
    custom_jobs: CustomJobOptions
    images: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Commands in place of container images, by image."""

    @property
    def run_dir(self) -> Path:
        """The folder of this run."""
        return self.work_dir / self.run_id

    @property
    def private_dir(self) -> Path:
        """Caches and environments, shared by all runs of the work directory."""
        return self.work_dir / record.PRIVATE

    @property
    def scope(self) -> Scope:
        """The placeholders that need no task."""
        return Scope(job=self.job)
