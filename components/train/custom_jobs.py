"""Custom jobs of one training, in the regions of its candidates: created, listed by their labels, and cancelled."""

import csv
import dataclasses
import functools
import pathlib
from typing import Any

from components import vertex_clients
from components.vertex_clients import NotFoundError, call
from localvertex._base.userinput.errors import UserError
from trainer.google_errors import GoogleError, google_errors

_SHORTAGES = pathlib.Path(__file__).with_name("shortages.csv")
"""How Vertex AI says that it has no machines, with the source of each fact."""

QUEUE = "queue"

_SUCCEEDED, _FAILED = "JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED"
_ENDED = {_SUCCEEDED, _FAILED, "JOB_STATE_CANCELLED", "JOB_STATE_EXPIRED", "JOB_STATE_PARTIALLY_SUCCEEDED"}


@functools.cache
def _shortages() -> dict[tuple[str, str], str]:
    with _SHORTAGES.open(encoding="utf-8", newline="") as file:
        # The first kind that has a status names it: a job's code does not tell a quota from a stockout.
        return {(row["where"], row["status"]): row["kind"] for row in reversed([*csv.DictReader(file)])}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job:
    """A custom job as the service describes it."""

    name: str
    """projects/P/locations/R/customJobs/ID."""
    region: str
    state: str
    code: int
    """google.rpc.Code of its error; 0 without one."""
    message: str
    created: float
    """Times are in seconds since 1970; 0 if it has not happened."""
    started: float
    """When it was running for the first time."""
    ended: float
    labels: dict[str, str]

    @property
    def has_ended(self) -> bool:
        """Whether its state is final."""
        return self.state in _ENDED

    @property
    def has_succeeded(self) -> bool:
        """Whether its program ended with 0."""
        return self.state == _SUCCEEDED

    @property
    def has_failed(self) -> bool:
        """Whether its program failed, or the service could not run it."""
        return self.state == _FAILED

    @property
    def is_waiting(self) -> bool:
        """Whether it has no machines at present."""
        return ("wait", self.state) in _shortages()

    @property
    def shortage(self) -> str:
        """The kind of the shortage with which it ended before it started; empty if that is not why it ended."""
        # After a start, the same code may be the program's own: TensorFlow calls a full GPU RESOURCE_EXHAUSTED.
        if not self.has_failed or self.started:
            return ""
        return _shortages().get(("job", str(self.code)), "")


class Refused(Exception):
    """The service did not accept a job; `shortage` is its kind, empty for another reason."""

    def __init__(self, error: GoogleError) -> None:
        super().__init__(error.message)
        self.error = error
        self.shortage = _shortages().get(("create", str(error.code)), "") if not error.may_have_arrived else ""


class CustomJobs:
    """The custom jobs that a step may create.

    Args:
        pipeline_root: Folder of the pipeline; a local one calls the local endpoint.
    """

    def __init__(self, pipeline_root: str) -> None:
        self._client = functools.cache(lambda region: vertex_clients.jobs(region, pipeline_root))
        self._parent = functools.cache(lambda region: vertex_clients.parent(region, pipeline_root))

    def create(self, region: str, job: dict[str, Any]) -> Job:
        """Create a job.

        Args:
            region: Where.
            job: The CustomJob.

        Raises:
            Refused: The service refuses it, or its answer was lost.
        """
        request = {"parent": self._parent(region), "custom_job": job}
        with google_errors(Refused):
            return _job(self._client(region).create_custom_job(request=request, timeout=60, retry=None), region)

    def labelled(self, region: str, **labels: str) -> list[Job]:
        """Return the jobs of a region that have all these labels, the oldest first."""
        text = " AND ".join(f'labels.{name}="{value}"' for name, value in labels.items())
        request = {"parent": self._parent(region), "filter": text, "page_size": 100}
        found = call(self._client(region).list_custom_jobs, request, what=f"the jobs of {region} cannot be listed")
        return sorted((_job(each, region) for each in found), key=lambda job: (job.created, job.name))

    def cancel(self, job: Job) -> None:
        """Ask a job to stop; one that has ended stays as it is."""
        try:
            call(self._client(job.region).cancel_custom_job, {"name": job.name}, what=f"{job.name} cannot be cancelled")
        except NotFoundError:
            return
        except UserError:
            # The service refuses to cancel a job that has ended.
            if (found := self.get(job)) and not found.has_ended:
                raise

    def get(self, job: Job) -> Job | None:
        """Return the present state of a job, None if it was deleted."""
        try:
            found = call(self._client(job.region).get_custom_job, {"name": job.name}, what=f"{job.name} cannot be read")
        except NotFoundError:
            return None
        return _job(found, job.region)


def _job(message: Any, region: str) -> Job:
    def seconds(name: str) -> float:
        value = getattr(message, name)
        return float(value.timestamp()) if value else 0.0

    return Job(
        name=message.name,
        region=region,
        state=message.state.name,
        code=int(message.error.code) if message.error else 0,
        message=str(message.error.message) if message.error else "",
        created=seconds("create_time"),
        started=seconds("start_time"),
        ended=seconds("end_time") or seconds("update_time"),
        labels=dict(message.labels),
    )
