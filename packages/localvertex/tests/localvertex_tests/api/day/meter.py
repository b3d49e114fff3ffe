"""Memory, file descriptors, threads and processor time of the servers."""

from dataclasses import dataclass, field
from statistics import median
from typing import Any

import psutil


@dataclass(frozen=True, kw_only=True)
class _Sample:
    megabytes: float
    num_files: int
    num_threads: int


@dataclass
class Meter:
    """Samples of the present server, and the processor time of all."""

    samples: list[_Sample] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)

    def watch(self, pid: int) -> None:
        """Begin with a new server."""
        self._process = psutil.Process(pid)
        self.samples.clear()
        self.cpu_seconds.append(0.0)

    def sample(self) -> None:
        """Look at the server."""
        with self._process.oneshot():
            times = self._process.cpu_times()
            self.cpu_seconds[-1] = times.user + times.system
            self.samples.append(
                _Sample(
                    megabytes=self._process.memory_info().rss / 2**20,
                    num_files=self._process.num_fds(),
                    num_threads=self._process.num_threads(),
                )
            )

    def figures(self) -> dict[str, Any]:
        """Compare quarters of the last server's samples by their medians, from the second on."""
        quarter = len(self.samples) // 4
        parts = [self.samples[each * quarter : (each + 1) * quarter] for each in (1, 2, 3)]
        found: dict[str, Any] = {"samples": len(self.samples), "cpu_seconds": round(sum(self.cpu_seconds))}
        # The lowest of the last ones: at one moment a request may be open, but a file that is leaked stays.
        found["files at the end"] = min(each.num_files for each in self.samples[-10:])
        for name in ("megabytes", "num_files", "num_threads"):
            found[name] = [round(median(getattr(each, name) for each in part), 1) for part in parts]
        return found
