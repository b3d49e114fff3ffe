"""How a run is done; none of it changes what the pipeline computes."""

import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from localvertex.custom_jobs import Options as CustomJobOptions
from userinput.errors import UserError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,99}")
"""Projects and regions: they become parts of resource names."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of `localvertex run` that do not belong to the pipeline.

    Raises:
        UserError: a value makes no sense.
    """

    work_dir: Path = Path("runs")
    run_id: str | None = None
    """Name of a new run; made from the pipeline's name and the time when None."""
    project: str = "local-project"
    region: str = "us-central1"
    use_cache: bool = True
    max_parallel: int = field(default_factory=lambda: max(2, os.cpu_count() or 2))
    """Steps at once."""
    max_backoff_seconds: float = 10.0
    """Longest wait before a retry, whatever the pipeline says."""
    grace_seconds: float = 10.0
    """Between SIGTERM and SIGKILL when a run is stopped."""

    images: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Commands in place of container images, by image; `open_pipeline` takes them for a file of its own."""
    fail_fast: bool = False
    """Whether no further step starts once one has failed; exit tasks still do."""
    schedule_time: str = ""
    """The instant of the schedule that fired the run, RFC 3339; empty: the run's own start."""
    custom_jobs: CustomJobOptions = field(default_factory=CustomJobOptions)
    """Restart rule and faults of its custom jobs."""

    def __post_init__(self) -> None:
        """Refuses nonsense."""
        if self.max_parallel < 1:
            raise UserError(f"--max-parallel {self.max_parallel}: at least 1 expected")
        for name, seconds in (("--max-backoff", self.max_backoff_seconds), ("--grace", self.grace_seconds)):
            if not 0 <= seconds < math.inf:
                raise UserError(f"{name} {seconds}: seconds, 0 or more, expected")
        for name, text in (("--project", self.project), ("--region", self.region)):
            if not NAME.fullmatch(text):
                raise UserError(f"{name} {text!r}: letters, digits, '-', '.', ':' and '_' expected")
