"""Shortages that a user asks for: no machine, no quota, or a queue, as the service answers them (docs/faults.md).

A shortage concerns the jobs that ask for machines where it is, and lasts from the first of them on. Sources of the
texts: GoogleCloudPlatform/vertex-ai-samples#3479 and stable-diffusion-on-gcp#12; the page "Understand the custom
training service" has the queue.
"""

import re
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from localvertex._base.lines import WriteLine
from localvertex._base.userinput.errors import UserError
from localvertex.errors import Cancelled, TaskFailed
from localvertex.jobs.job import CustomJob
from localvertex.jobs.status import LOG, EventKind, JobEvent, JobState, JobStatus
from localvertex.machines import load_catalogue
from localvertex.machines.catalogue.quota import MachineRequest, quota_metrics
from localvertex.processes import logs

GRAMMAR = (
    "stockout, quota or queue, WHERE [for 20s]; WHERE is candidate 0, a region like us-central1, STANDARD, SPOT, "
    "FLEX_START or all; a queue needs its time"
)

_SHORTAGE = re.compile(
    r"(?P<kind>stockout|quota|queue)\s+"
    r"(?P<where>all|candidate\s+\d{1,4}|STANDARD|SPOT|FLEX_START|[a-z]+-[a-z]+\d{1,2})"
    r"(?:\s+for\s+(?P<seconds>\d{1,9}(?:\.\d{1,3})?)\s*s)?",
    re.IGNORECASE,
)

_STRATEGIES = ("STANDARD", "SPOT", "FLEX_START")

_INSUFFICIENT = (
    "Resources are insufficient in region: {region}. Please try a different region or use a different accelerator."
)
_NO_QUOTA = "The following quota metrics exceed quota limits: {metrics}"

_POLL_SECONDS = 0.05

_SEARCH_SECONDS = 1.0
"""How long a job without machines is pending before it fails; minutes on the service."""


class ShortageKind(StrEnum):
    """What is short, and so what the service does."""

    STOCKOUT = "stockout"
    """The job is accepted and fails; with FLEX_START it waits."""
    QUOTA = "quota"
    """The job is not accepted."""
    QUEUE = "queue"
    """The job is accepted and waits."""


@dataclass(frozen=True, kw_only=True)
class Shortage:
    """A shortage in one place."""

    kind: ShortageKind
    where: str
    """`candidate N`, a region, a scheduling strategy, or `all`."""
    seconds: float | None = None
    """How long it lasts from the first job on; None: for the whole run."""

    def __post_init__(self) -> None:
        """Refuse a queue without an end."""
        if self.kind is ShortageKind.QUEUE and self.seconds is None:
            raise UserError(f"{self}: expected its time, for example 'for 20s'")

    def concerns(self, job: CustomJob) -> bool:
        """Return whether a job asks for machines there."""
        return self.where in ("all", f"candidate {job.candidate}", job.region, job.scheduling.strategy)

    def __str__(self) -> str:
        """Format it as on the command line."""
        return f"{self.kind} {self.where}{'' if self.seconds is None else f' for {self.seconds:g}s'}"


def parse(text: str) -> Shortage | None:
    """Read a shortage as written on the command line; None for another fault.

    Raises:
        UserError: It makes no sense.
    """
    if (match := _SHORTAGE.fullmatch(text.strip())) is None:
        return None
    where = " ".join(match["where"].lower().split())
    try:
        return Shortage(
            kind=ShortageKind(match["kind"].lower()),
            where=where.upper() if where.upper() in _STRATEGIES else where,
            seconds=float(match["seconds"]) if match["seconds"] else None,
        )
    except UserError as error:
        raise UserError(f"--fault {error}") from None


class QuotaExceeded(TaskFailed):
    """The service does not accept the job."""


class Shortages:
    """The shortages of a run, or of the clients of a server, and since when each lasts. Any thread may call it."""

    def __init__(self, given: Iterable[Shortage] = ()) -> None:
        self.given = tuple(given)
        self._lock = threading.Lock()
        self._since: dict[Shortage, float] = {}

    def find(self, kind: ShortageKind, job: CustomJob) -> Shortage | None:
        """Return the shortage of a kind that a job meets now; None without one. The first job starts its time."""
        now = time.monotonic()
        with self._lock:
            for each in self.given:
                if each.kind is kind and each.concerns(job):
                    since = self._since.setdefault(each, now)
                    if each.seconds is None or now < since + each.seconds:
                        return each
        return None

    def check_quota(self, job: CustomJob, report: WriteLine) -> None:
        """Refuse a job as the service does.

        Raises:
            QuotaExceeded: There is no quota for its machines.
        """
        if (found := self.find(ShortageKind.QUOTA, job)) is not None:
            report(f"fault: {found}: the job is not accepted")
            raise QuotaExceeded(_NO_QUOTA.format(metrics=",".join(_metrics(job))))

    def wait(
        self,
        job: CustomJob,
        folder: Path,
        *,
        cancel: threading.Event,
        observe: Callable[[JobStatus], None],
        report: WriteLine,
    ) -> str:
        """Wait until a job has machines; return why it gets none, empty if it gets them.

        Args:
            job: The job, which has been accepted.
            folder: The folder with its log.
            cancel: Ends the waiting once another thread sets it.
            observe: Called with each change of its status.
            report: Called with each shortage that it meets.

        Raises:
            Cancelled: It was cancelled.
        """

        def announce(shortage: Shortage, state: JobState, text: str) -> None:
            event = JobEvent(kind=EventKind.FAULT, text=f"fault: {shortage}: {text}", action=shortage.kind)
            with suppress(OSError):  # a full disk does not end the job
                logs.add(folder / LOG, event.text)
            report(event.text)
            observe(JobStatus(state=state, events=(event,)))

        def pause(seconds: float) -> None:
            if cancel.wait(seconds):
                observe(JobStatus(state=JobState.CANCELLED))
                raise Cancelled

        queue, stockout = ShortageKind.QUEUE, ShortageKind.STOCKOUT
        if found := self.find(queue, job):
            announce(found, JobState.QUEUED, "the job is in the queue")
            while self.find(queue, job):
                pause(_POLL_SECONDS)
        if (found := self.find(stockout, job)) is None:
            return ""
        waits = job.scheduling.strategy == "FLEX_START"
        announce(found, JobState.PENDING, "the job waits for machines" if waits else "there are no machines")
        ends = time.monotonic() + (job.scheduling.max_wait_seconds if waits else _SEARCH_SECONDS)
        while time.monotonic() < ends:
            pause(_POLL_SECONDS)
            if waits and not self.find(stockout, job):
                return ""
        return _INSUFFICIENT.format(region=job.region)

    @property
    def unused(self) -> list[str]:
        """The shortages that no job has met, as sentences."""
        with self._lock:
            left = [each for each in self.given if each not in self._since]
        return [f"fault {each} did not happen: no custom job asked for machines there" for each in left]


def _metrics(job: CustomJob) -> list[str]:
    """Return the quota metrics that the service names: those of GPUs, or of CPUs for a job without any."""
    requests = [
        MachineRequest(
            machine_type=each.machine_type,
            accelerator_type=each.accelerator_type,
            accelerator_count=each.num_gpus,
            replica_count=each.num_replicas,
        )
        for each in job.pools
    ]
    found = quota_metrics(requests, scheduling_strategy=job.scheduling.strategy, catalogue=load_catalogue())
    return [each for each in found if each.endswith("_gpus")] or [*found]
